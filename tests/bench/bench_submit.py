"""Durably accepted submits per second through HTTP on the embedded bus, and per core: accepted ÷ CPU seconds of all threads.

The tenant may run nothing meanwhile (a first run holds the only place), so that accepting is what is measured. CPU is counted until
the process is quiet again: what the scheduler still has to do with them belongs to them."""
import os
import sys
import time

import common

BODY = b'{"agent":"bench","command":["true"]}'


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    settings = {"tenant.running_cap": 1, "tenant.queued_cap": 0}
    with common.instance(**settings) as up:
        up.api.submit("bench", ["sleep", "120"], timeout_seconds=120)
        common.until(lambda: up.api.get("/v1/runs?state=running").json["runs"], 20, "the run that holds the place")
        request = (f"POST /v1/runs HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {up.token}\r\n"
                   f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n").encode() + BODY
        address = up.url.removeprefix("http://")
        common.load(address, 500, 16, 202, request)
        for connections in (1, 64, 256):
            n = count if connections > 1 else 500
            before, floor = common.when_idle(up.process.pid), fdatasyncs_per_second(up.state_dir)
            got = common.load(address, n, connections, 202, request)
            at_once = common.cpu_seconds(up.process.pid) - before
            settled = common.when_idle(up.process.pid) - before
            common.figure("accepted_submits_per_second", connections=connections, n=n, value=n / got["seconds"], p50=got["p50"],
                          p99=got["p99"], per_core=n / settled, per_core_until_accepted=n / at_once,
                          floor="fdatasync of one page each", floor_value=floor, ratio=n / got["seconds"] / floor)
        up.kill()
        up.process = None
        os._exit(finish(up))


def finish(up):
    """Tens of thousands of queued runs need not be run to an end."""
    from harness import leftovers
    import shutil
    leftovers.sweep(up)
    shutil.rmtree(up.folder, ignore_errors=True)
    shutil.rmtree(up.run_dir, ignore_errors=True)
    sys.stdout.flush()
    return 0


def fdatasyncs_per_second(folder):
    fd = os.open(folder / "floor", os.O_RDWR | os.O_CREAT, 0o600)
    since = time.perf_counter()
    for _ in range(200):
        os.pwrite(fd, b"x" * 4096, 0)
        os.fdatasync(fd)
    took = time.perf_counter() - since
    os.close(fd)
    (folder / "floor").unlink()
    return 200 / took


if __name__ == "__main__":
    main()

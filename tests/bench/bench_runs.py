"""Runs through the API: cold and warm, one after the other and with eight clients."""
import json
import sys
import threading
import time

import common

PYTHON = ["/usr/bin/python3", "-c", "pass"]
TRUE = ["/usr/bin/true"]
POOL = 4


class Client:
    """One connection that is kept, as an agent's would be."""

    def __init__(self, up):
        self.connection = up.api.connection()
        self.headers = {"Authorization": f"Bearer {up.token}"}

    def run(self, command):
        """Milliseconds, and the result."""
        body = json.dumps({"agent": "bench", "command": command})
        since = time.perf_counter()
        self.connection.request("POST", common.RUN, body, self.headers)
        answer = self.connection.getresponse()
        result = json.loads(answer.read())
        took = (time.perf_counter() - since) * 1e3
        assert answer.status == 200 and result["exit_code"] == 0, result
        return took, result


def one_by_one(up, rounds, warm):
    """`true` and python in turn, each beside the same program started bare."""
    client = Client(up)
    times = {"true": [], "python": []}
    floors = {"true": [], "python": []}
    queued, began_warm = [], 0
    for i in range(rounds + 3):
        for name, command in (("true", TRUE), ("python", PYTHON)):
            if warm:
                common.full(up.api, POOL)
            took, result = client.run(command)
            floor = common.bare(*command)
            if i < 3:
                continue
            times[name].append(took)
            floors[name].append(floor)
            queued.append(took - result["duration_ms"])
            began_warm += result["warm"]
    kind = "warm" if warm else "cold"
    for name in ("python", "true"):
        common.timed(f"{kind}_run_{name}", times[name], "the same program started bare", floors[name],
                     all_warm=began_warm == 2 * rounds if warm else None, outside_command_p50=common.at(queued, 0.5))


def eight_clients(up, seconds, kind):
    """Runs per second of `true` with eight clients, for a while."""
    counts, until = [0] * 8, time.monotonic() + seconds

    def work(i):
        client = Client(up)
        while time.monotonic() < until:
            client.run(TRUE)
            counts[i] += 1

    before, since = common.cpu_seconds(up.process.pid), time.monotonic()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, runs = time.monotonic() - since, sum(counts)
    common.figure(f"{kind}_runs_per_second", clients=8, n=runs, value=runs / took,
                  up_cpu_ms_per_run=(common.cpu_seconds(up.process.pid) - before) * 1e3 / runs)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with common.instance() as up:
        one_by_one(up, rounds, warm=False)
        eight_clients(up, 8, "cold")
        common.pool(up.api, POOL)
        one_by_one(up, rounds, warm=True)
        common.full(up.api, POOL)
        eight_clients(up, 8, "pooled")


if __name__ == "__main__":
    main()

"""What sandboxes leave on a host: processes, cgroups, mounts, directories, journals. All found by names that one instance owns."""
import os
import pathlib
import signal

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def worker_id(up):
    path = up.state_dir / "worker.id"
    return path.read_text().strip() if path.exists() else None


def cgroups(up):
    """Cgroups of this worker's sandboxes, in every hierarchy."""
    worker = worker_id(up)
    if not worker:
        return []
    parents = [CGROUPS / "stockade" / worker, *CGROUPS.glob(f"*/stockade/{worker}")]
    return sorted({str(path) for parent in parents if parent.is_dir() for path in parent.rglob("*") if path.is_dir()})


def processes(up, own=None):
    """(pid, command line) of processes in this worker's cgroups or with its directories in their command line."""
    worker, marks = worker_id(up), [os.fsencode(str(up.run_dir)), os.fsencode(str(up.state_dir))]
    spared = {os.getpid(), own or (up.process.pid if up.process else 0)}
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in spared:
            continue
        try:
            line = pathlib.Path("/proc", entry, "cmdline").read_bytes()
            groups = pathlib.Path("/proc", entry, "cgroup").read_text()
            state = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z" and (worker and f"/{worker}/" in groups or any(mark in line for mark in marks)):
            found.append((int(entry), line.replace(b"\0", b" ").decode(errors="replace")[:200]))
    return found


def mounts(up):
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        return [line.split()[4] for line in lines if str(up.run_dir) in line or str(up.state_dir) in line]


def directories(up):
    """Sandboxes' directories in run_dir and in the runtime's own state."""
    folders = [up.run_dir, up.run_dir / "rt"]
    return sorted(str(path) for folder in folders if folder.is_dir() for path in folder.iterdir() if path.name.startswith("sbx-"))


def journals(up):
    return sorted(str(path) for path in up.state_dir.glob("**/sbx-*"))


def everything(up):
    found = {"cgroups": cgroups(up), "processes": processes(up), "mounts": mounts(up), "directories": directories(up), "journals": journals(up)}
    return {kind: things for kind, things in found.items() if things}


def sweep(up):
    """Ends what a failed test left behind, so that it does not disturb the next."""
    for _ in range(3):
        for pid, _line in processes(up):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    worker = worker_id(up)
    groups = cgroups(up) + [str(path) for path in [CGROUPS / "stockade" / str(worker), *CGROUPS.glob(f"*/stockade/{worker}")]]
    for path in sorted(groups, key=len, reverse=True):
        try:
            os.rmdir(path)
        except OSError:
            pass

"""kill -9 of `stockade up` at twenty random moments under load: nothing accepted is lost, nothing is started twice, nothing is left."""
import os
import random
import threading
import time

import evidence
from harness import leftovers
from harness.wait import until

KILLS = 20


class Load(threading.Thread):
    """Submits runs, each under a key of its own that is repeated until it is accepted: a lost answer makes no second run."""
    def __init__(self, up, number, seed):
        super().__init__(daemon=True)
        self.up, self.number, self.random = up, number, random.Random(seed)
        self.accepted, self.over = {}, threading.Event()

    def run(self):
        n = 0
        while not self.over.is_set():
            key = f"{self.number}-{n}"
            run = evidence.submit(self.up, key, f"{self.random.choice([0, 0, 0.05, 0.2, 0.6])}")
            if run:
                self.accepted[key] = run
                n += 1
            self.over.wait(0.15)


def test_kill9_at_twenty_random_moments_under_load(fresh):
    seed = int(os.environ.get("STOCKADE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed {seed} (STOCKADE_SEED={seed} repeats it)")
    chance = random.Random(seed)
    up = fresh(settings={"worker.lease": "4s", "worker.heartbeat": "1s"}).start()
    up.api.configure({evidence.AGENT: {"allow": []}})
    up.api.ok("PUT", "/v1/pools/warm", {"agent": evidence.AGENT, "target": 2})
    loads = [Load(up, number, seed + number) for number in range(3)]
    for load in loads:
        load.start()
    with_sandboxes = 0
    for _ in range(KILLS):
        moment = chance.choice([0.02, 0.1, 0.3, 0.6, 1.0]) * (0.5 + chance.random())
        begun = time.monotonic()
        until(lambda begun=begun, moment=moment: time.monotonic() - begun >= moment, 5, "the moment", pause=0.002)
        with_sandboxes += bool(leftovers.directories(up))
        up.kill()
        up.start()
    for load in loads:
        load.over.set()
    for load in loads:
        load.join(30)
    runs = [run for load in loads for run in load.accepted.values()]
    assert len(runs) == len(set(runs)) and len(runs) >= KILLS, f"{len(runs)} runs"
    assert with_sandboxes >= KILLS // 4, "the kills hit nothing"
    up.api.ok("PUT", "/v1/pools/warm", {"agent": evidence.AGENT, "target": 0})
    reasons = evidence.check(up, runs)
    print(f"{len(runs)} runs, {with_sandboxes} of {KILLS} kills hit sandboxes, {dict(reasons)}")
    assert reasons["exited"] > reasons["worker_lost"]
    evidence.nothing_is_left(up)

"""A plan cannot lie: the objects that it shows are the objects that create writes."""
import json
import pathlib
import re
import shutil

from harness import leftovers
from harness.api import PLATFORM
from harness.wait import until

ID = re.compile(r"\b(sbx|run)-[0-9a-z]{26}\b")


def substituted(value, up):
    """The same ids and blanks on both sides: sandbox, run, host uid range."""
    text = ID.sub(r"\1-ID", json.dumps(value, sort_keys=True))
    document = json.loads(text)
    linux = document.get("linux", {})
    for kind in ("uidMappings", "gidMappings"):
        for mapping in linux.get(kind, []):
            mapping["hostID"] = "HOST"
    return document


def captured(up, command="sleep 5", **more):
    """config.json of a sandbox while its run is running."""
    until(lambda: not leftovers.directories(up), 20, "no other sandbox")
    run = up.api.submit("helper", ["sh", "-c", command], **more)
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "running", 20, "running")
    (folder,) = leftovers.directories(up)[:1]
    config = json.loads(pathlib.Path(folder, "config.json").read_text())
    up.api.post(f"/v1/runs/{run}/cancel")
    until(lambda: up.api.ok("GET", f"/v1/runs/{run}")["state"] == "finished", 20, "finished")
    return config


def test_the_planned_oci_config_is_the_written_one(up):
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "helper", "command": ["sleep", "5"]})
    planned = plan["objects"]["config.json"] if "config.json" in plan["objects"] else next(
        value for value in plan["objects"].values() if isinstance(value, dict) and "ociVersion" in value)
    written = captured(up)
    assert substituted(planned, up) == substituted(written, up)


def test_the_plan_changes_nothing_and_works_while_it_is_off(fresh):
    up = fresh().start()
    before = {path.name for path in up.run_dir.iterdir()} if up.run_dir.exists() else set()
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "new", "command": ["python", "job.py"]})
    assert plan["backend"] == "oci" and plan["would_refuse"], plan
    assert {path.name for path in up.run_dir.iterdir()} == before
    assert up.api.ok("GET", "/v1/runs")["runs"] == []
    assert up.api.audit() == []


def test_the_plan_says_why_for_every_other_backend(up):
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "helper", "command": ["true"]})
    assert {one["backend"] for one in plan["other_backends"]} == {"docker", "k8s", "firecracker"}
    assert all(one["why_not"] for one in plan["other_backends"])
    assert plan["isolation"] in ("container", "gvisor") and plan["limits"]["memory_bytes"] == 512 << 20
    assert [(one["entry"], one["effective"]) for one in plan["allow"]] == [("api.vendor.com", True)]
    assert plan["would_refuse"] == []


def test_the_plan_keeps_secrets_blank(up):
    plan = up.api.post(f"{PLATFORM}/plan", {"agent": "helper", "command": ["echo", "s3cret-arg"], "env": {"K": "s3cret-env"}})
    assert plan.status == 200 and b"s3cret" not in plan.body


def test_a_required_runtime_class_is_never_weakened(fresh):
    up = fresh(settings={"worker.runtime": "runc"}).start()
    up.api.configure({"a": {}}, require_runtime_class=True)
    plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "a", "command": ["true"]})
    assert plan["backend"] is None and any("require_runtime_class" in one for one in plan["would_refuse"])
    up.api.post(f"{PLATFORM}/run", {"agent": "a", "command": ["true"]}).problem(422, "backend_unavailable")


def test_a_named_oci_runtime_is_the_one_that_runs(fresh):
    for runtime in ("runc", "crun"):
        if not shutil.which(runtime):
            continue
        up = fresh(settings={"worker.runtime": runtime}).start()
        up.api.configure({"a": {}})
        plan = up.api.ok("POST", f"{PLATFORM}/plan", {"agent": "a", "command": ["true"]})
        assert plan["runtime"].startswith(runtime), plan
        assert up.api.run("a", ["true"])["exit_code"] == 0
        up.stop()

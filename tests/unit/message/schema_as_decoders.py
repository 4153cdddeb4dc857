"""The schemas say what the decoders do. Usage: schema_as_decoders.py PROGRAM SOURCE_DIR.

Every golden and example is valid; every member that a schema names occurs in one; and each of thousands of changed
examples is judged the same by its schema and by its decoder (PROGRAM, see decoders.c)."""
import copy
import json
import pathlib
import subprocess
import sys

from schema import Schemas

VALUES = [None, True, 0, 1, -1, 0.5, 8, 1e300, 2**63, "", "x", "A b", "\n", "x/../y", "x" * 600, [], {}, ["x"], {"x": "x"}, [1]]
EXAMPLES = ["policy", "run-body", "run-body-full", "run-body-stdin"]


def schema_name(name, schemas):
    parts = name.split("-")
    while parts and "-".join(parts) + ".schema.json" not in schemas.files:
        parts.pop()
    assert parts, f"no schema for {name}"
    return "-".join(parts) + ".schema.json"


def load(source, schemas):
    golden = sorted((source / "proto/message/golden").glob("*.json"))
    examples = [source / f"proto/schema/examples/{name}.json" for name in EXAMPLES]
    for path in golden + examples:
        kind = path.stem if path in golden else path.stem if path.stem == "policy" else "run-body"
        yield path.stem, kind, schema_name(path.stem, schemas), json.loads(path.read_text())


def places(value, path=(), depth=0):
    """Paths of everything inside; of long lists and maps the first two and the last."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    if depth > 3:
        return
    for key, inner in items if len(items) < 40 else items[:2] + items[-1:]:
        yield path + (key,)
        yield from places(inner, path + (key,), depth + 1)


def changed(document, path, change):
    other = copy.deepcopy(document)
    at = other
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return other


def variants(document):
    yield "as it is", document
    if len(json.dumps(document)) > 12000:
        return
    for path in [()] + list(places(document)):
        where = "/" + "/".join(map(str, path))
        if path:
            yield f"without {where}", changed(document, path, lambda at, key: at.pop(key))
            for value in VALUES:
                yield f"{where} = {str(value)[:20]!r}", changed(document, path, lambda at, key: at.__setitem__(key, value))
        inner = document
        for key in path:
            inner = inner[key]
        if isinstance(inner, dict):
            yield f"{where}/zzz added", changed(document, path + ("zzz",), lambda at, key: at.__setitem__(key, 1))


def across_fields(name, document):
    """Refused for what a schema cannot say: an order between two members, or the form of an allow entry."""
    if name.startswith("egress-record"):
        return document.get("open_seq", 0) >= document.get("seq", 0)
    if name.startswith("event"):
        return any(across_fields("egress-record", record) for record in document.get("egress", []))
    if name.startswith("pools"):
        pools = list(document.values())
        return any(not p.get("min", 0) <= p.get("target", 0) <= p.get("max", p.get("target", 0)) for p in pools)
    return name == "policy"


def taken_as_absent(what):
    """Decoders take an empty text for an absent one; the schemas describe what is written."""
    return what.endswith("= ''")


def properties(schemas, schema, base, seen):
    """Names of members that a schema gives, inside other schemas too."""
    if not isinstance(schema, dict):
        return set()
    names = {key for key, sub in schema.get("properties", {}).items() if sub is not False}
    subs = list(schema.get("properties", {}).values())
    subs += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    if "$ref" in schema and schema["$ref"] not in seen:
        target, base = schemas.resolve(schema["$ref"], base)
        subs.append(target)
        seen = seen | {schema["$ref"]}
    for sub in subs:
        names |= properties(schemas, sub, base, seen)
    return names


def members(value):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return (set(value) if isinstance(value, dict) else set()).union(*map(members, inside))


def check_coverage(schemas, documents):
    used = {}
    for name, kind, schema, document in documents:
        used.setdefault(schema, set()).update(members(document))
    missing = []
    for schema, names in used.items():
        missing += [f"{schema}: {name}" for name in properties(schemas, schemas.files[schema], schema, frozenset()) - names]
    unused = set(schemas.files) - set(used) - {"common.schema.json"}
    return [f"no example for {name}" for name in sorted(unused)] + [f"in no example: {name}" for name in sorted(missing)]


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    schemas = Schemas(source / "proto/schema")
    documents = list(load(source, schemas))
    wrong = [f"{name}: {error}" for name, _, schema, document in documents for error in schemas.errors(document, schema)]
    wrong += check_coverage(schemas, documents)
    tried = [(name, kind, schema, what, other) for name, kind, schema, document in documents
             for what, other in variants(document)]
    lines = "".join(f"{kind} {json.dumps(other)}\n" for _, kind, _, _, other in tried)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True, timeout=100)
    answers = done.stdout.decode().splitlines()
    assert len(answers) == len(tried), f"{len(answers)} answers to {len(tried)}"
    refused = 0
    for (name, _, schema, what, other), answer in zip(tried, answers):
        errors = schemas.errors(other, schema)
        refused += bool(errors)
        if bool(errors) == (answer != "ok") or (not errors and across_fields(name, other)):
            continue
        if errors and taken_as_absent(what):
            continue
        wrong.append(f"{name} {what}: schema {errors[:1] or 'takes it'}, decoder {answer}")
    print(f"{len(documents)} documents, {len(tried)} variants, {refused} refused, {len(wrong)} wrong")
    print("\n".join(wrong[:40]))
    assert refused > 1000 and len(tried) - refused > 1000, "the mix tests too little"
    return 1 if wrong else 0


sys.exit(main())

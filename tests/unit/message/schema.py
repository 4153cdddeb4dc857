"""The part of JSON Schema 2020-12 that proto/schema uses. An unknown keyword is an error, so that none is skipped."""
import json
import pathlib
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return is_type(value, "number") and float(value).is_integer()
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def same(a, b):
    return type(a) is type(b) and a == b


class Schemas:
    def __init__(self, folder):
        self.files = {path.name: json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.schema.json")}

    def resolve(self, ref, base):
        name, _, pointer = ref.partition("#")
        schema = self.files[name or base]
        for part in pointer.split("/")[1:]:
            schema = schema[part]
        return schema, name or base

    def errors(self, value, name):
        return list(self._check(value, self.files[name], name, ""))

    def _check(self, value, schema, base, at):
        if schema is True:
            return
        if schema is False:
            yield f"{at}: not allowed"
            return
        for keyword in schema:
            if keyword in ("$schema", "$id", "$defs", "title", "description", "then"):
                continue
            yield from getattr(self, "_" + keyword.lstrip("$").lower())(value, schema, base, at)

    def _ok(self, value, schema, base):
        return next(iter(self._check(value, schema, base, "")), None) is None

    def _ref(self, value, schema, base, at):
        target, base = self.resolve(schema["$ref"], base)
        yield from self._check(value, target, base, at)

    def _type(self, value, schema, base, at):
        if not is_type(value, schema["type"]):
            yield f"{at}: not of type {schema['type']}"

    def _enum(self, value, schema, base, at):
        if not any(same(value, word) for word in schema["enum"]):
            yield f"{at}: not one of {schema['enum']}"

    def _const(self, value, schema, base, at):
        if not (same(value, schema["const"]) or (is_type(value, "number") and value == schema["const"])):
            yield f"{at}: not {schema['const']}"

    def _minimum(self, value, schema, base, at):
        if is_type(value, "number") and value < schema["minimum"]:
            yield f"{at}: below {schema['minimum']}"

    def _maximum(self, value, schema, base, at):
        if is_type(value, "number") and value > schema["maximum"]:
            yield f"{at}: over {schema['maximum']}"

    def _minlength(self, value, schema, base, at):
        if isinstance(value, str) and len(value) < schema["minLength"]:
            yield f"{at}: shorter than {schema['minLength']}"

    def _maxlength(self, value, schema, base, at):
        if isinstance(value, str) and len(value) > schema["maxLength"]:
            yield f"{at}: longer than {schema['maxLength']}"

    def _pattern(self, value, schema, base, at):
        # Python's $ also matches before a last line end; ECMA's does not.
        if isinstance(value, str) and not re.search(schema["pattern"].replace("$", r"\Z"), value):
            yield f"{at}: does not match {schema['pattern']}"

    def _required(self, value, schema, base, at):
        if isinstance(value, dict):
            yield from (f"{at}: {name} is missing" for name in schema["required"] if name not in value)

    def _properties(self, value, schema, base, at):
        if isinstance(value, dict):
            for name, sub in schema["properties"].items():
                if name in value:
                    yield from self._check(value[name], sub, base, f"{at}/{name}")

    def _additionalproperties(self, value, schema, base, at):
        if isinstance(value, dict):
            for name in value:
                if name not in schema.get("properties", {}):
                    yield from self._check(value[name], schema["additionalProperties"], base, f"{at}/{name}")

    def _propertynames(self, value, schema, base, at):
        if isinstance(value, dict):
            for name in value:
                yield from self._check(name, schema["propertyNames"], base, f"{at}/{name}")

    def _maxproperties(self, value, schema, base, at):
        if isinstance(value, dict) and len(value) > schema["maxProperties"]:
            yield f"{at}: more than {schema['maxProperties']} members"

    def _items(self, value, schema, base, at):
        if isinstance(value, list):
            for i, item in enumerate(value[len(schema.get("prefixItems", [])):] if "prefixItems" in schema else value):
                yield from self._check(item, schema["items"], base, f"{at}/{i}")

    def _prefixitems(self, value, schema, base, at):
        if isinstance(value, list):
            for i, (item, sub) in enumerate(zip(value, schema["prefixItems"])):
                yield from self._check(item, sub, base, f"{at}/{i}")

    def _minitems(self, value, schema, base, at):
        if isinstance(value, list) and len(value) < schema["minItems"]:
            yield f"{at}: fewer than {schema['minItems']} items"

    def _maxitems(self, value, schema, base, at):
        if isinstance(value, list) and len(value) > schema["maxItems"]:
            yield f"{at}: more than {schema['maxItems']} items"

    def _allof(self, value, schema, base, at):
        for sub in schema["allOf"]:
            yield from self._check(value, sub, base, at)

    def _anyof(self, value, schema, base, at):
        if not any(self._ok(value, sub, base) for sub in schema["anyOf"]):
            yield f"{at}: none of anyOf"

    def _oneof(self, value, schema, base, at):
        if sum(self._ok(value, sub, base) for sub in schema["oneOf"]) != 1:
            yield f"{at}: not exactly one of oneOf"

    def _not(self, value, schema, base, at):
        if self._ok(value, schema["not"], base):
            yield f"{at}: what must not hold does"

    def _if(self, value, schema, base, at):
        if self._ok(value, schema["if"], base):
            yield from self._check(value, schema["then"], base, at)

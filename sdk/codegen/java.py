#!/usr/bin/env python3
"""Writes the wire types of the Java SDK from the JSON Schemas of the `qwen` dialect.

    sdk/codegen/java.py [--check]

Reads schemas/qwen-stream.json and qwen-stream-chunk.json, the lines that a worker writes; writes Wire.java in
sdk/java/qwen-agent-sdk. With `--check` nothing is written, and the exit code is 1 if the file is out of date.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "sdk/java/qwen-agent-sdk/src/main/java/io/github/qwenagent/Wire.java"
SOURCES = ("qwen-stream.json", "qwen-stream-chunk.json")

HEADER = """package io.github.qwenagent;

import io.github.qwenagent.internal.json.Fields;
import io.github.qwenagent.internal.json.JsonException;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The lines of the `qwen` dialect that a worker writes, and their parts. Generated from schemas/ by sdk/codegen/java.py; do
 * not edit. {@link Json#as} reads them from the raw line of a message; unknown fields are in the raw line only.
 */
public final class Wire {
    private static final Fields NO_FIELDS = Fields.empty();

    private Wire() {}
"""


def definitions() -> tuple[dict[str, Any], list[str]]:
    """All definitions by name, and the `type` (or `object`) of every line."""
    merged: dict[str, Any] = {}
    kinds: set[str] = set()
    for source in SOURCES:
        schema = json.loads((ROOT / "schemas" / source).read_text())
        merged.update(schema["$defs"])
        for line in schema["anyOf"]:
            properties = schema["$defs"][reference(line)].get("properties", {})
            marker = properties.get("type") or properties.get("object") or {}
            if "$ref" in marker:
                kinds.update(words(schema["$defs"][reference(marker)]))
    return merged, sorted(kinds)


def reference(schema: dict[str, Any]) -> str:
    """The name that a `$ref` points to."""
    return str(schema["$ref"]).rsplit("/", 1)[-1]


def words(schema: dict[str, Any]) -> list[str]:
    """The values of a schema that is a choice of constant strings."""
    found = [each.get("const") for each in schema.get("oneOf", [])]
    return found if found and all(isinstance(word, str) for word in found) else []


def fields_of(schema: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object, and the required ones. A choice of objects has all their fields."""
    if "properties" in schema:
        return schema["properties"], set(schema.get("required", []))
    variants = schema.get("oneOf", [])
    if not variants or not all("properties" in each for each in variants):
        return {}, set()
    merged: dict[str, Any] = {}
    for each in variants:
        merged.update(each["properties"])
    for tag in ("type", "kind"):
        if "const" in merged.get(tag, {}):
            merged[tag] = {"type": "string", "description": "The kind, on which it depends which fields are set."}
    return merged, {tag for tag in ("type", "kind") if tag in merged}


def camel(name: str) -> str:
    """The Java name of a field."""
    first, *rest = re.split(r"[^A-Za-z0-9]+", name)
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def constant(kind: str) -> str:
    """The Java name of a constant."""
    return re.sub(r"[^A-Za-z0-9]+", "_", kind).upper()


def text(schema: dict[str, Any], otherwise: str) -> str:
    """The description as one line of Javadoc."""
    described = " ".join(str(schema.get("description", "")).split()) or otherwise
    return described.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")


class Field:
    """A component of a record."""

    def __init__(self, name: str, schema: Any, is_required: bool, defs: dict[str, Any]) -> None:
        self.name = name
        self.java = camel(name)
        self.schema = schema if isinstance(schema, dict) else {}
        self.is_required = is_required
        self.defs = defs
        self.type, self.reader = self.resolve()

    def core(self) -> dict[str, Any]:
        """The only alternative of a nullable schema, or the schema itself."""
        rest = [each for each in self.schema.get("anyOf", []) if each.get("type") != "null"]
        return rest[0] if len(rest) == 1 else self.schema

    def is_nullable(self) -> bool:
        """True if the field may be absent or null."""
        kind = self.schema.get("type")
        if isinstance(kind, list) and "null" in kind:
            return True
        return any(each.get("type") == "null" for each in self.schema.get("anyOf", [])) or not self.is_required

    def kind(self, schema: dict[str, Any]) -> str:
        """`string`, `object:Name`, another type of JSON, or `any`."""
        if "$ref" in schema:
            target = self.defs[reference(schema)]
            if words(target):
                return "string"
            return f"object:{reference(schema)}" if fields_of(target)[0] else "any"
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [each for each in kind if each != "null"]
            kind = rest[0] if len(rest) == 1 else None
        return str(kind) if kind else "any"

    def resolve(self) -> tuple[str, str]:
        """The Java type and the expression that reads the field."""
        schema = self.core()
        kind = self.kind(schema)
        quoted = f'"{self.name}"'
        if kind == "array":
            return self.resolve_list(schema, quoted)
        if kind == "object":
            values = schema.get("additionalProperties")
            inner = self.kind(values) if isinstance(values, dict) else "any"
            if inner.startswith("object:"):
                name = inner.partition(":")[2]
                return self.either(f"Map<String, {name}>", f"fields.objectMap({quoted}, {name}::read)", "Map.of()")
            return "@Nullable Json", f"Json.orNull(fields.value({quoted}))"
        if kind.startswith("object:"):
            name = kind.partition(":")[2]
            return self.either(name, f"fields.object({quoted}, {name}::read)", f"{name}.read(NO_FIELDS)")
        simple = {
            "string": ("String", "string", '""'),
            "integer": ("Long", "integer", "0L"),
            "number": ("Double", "number", "0.0"),
            "boolean": ("Boolean", "bool", "Boolean.FALSE"),
        }
        if kind in simple:
            name, method, zero = simple[kind]
            return self.either(name, f"fields.{method}({quoted})", zero)
        return "@Nullable Json", f"Json.orNull(fields.value({quoted}))"

    def resolve_list(self, schema: dict[str, Any], quoted: str) -> tuple[str, str]:
        """The type and the reader of a list."""
        items = schema.get("items")
        inner = self.kind(items) if isinstance(items, dict) else "any"
        if inner.startswith("object:"):
            name = inner.partition(":")[2]
            return self.either(f"List<{name}>", f"fields.objects({quoted}, {name}::read)", "List.of()")
        if inner == "string":
            return self.either("List<String>", f"fields.strings({quoted})", "List.of()")
        if inner == "integer":
            return self.either("List<Long>", f"fields.integers({quoted})", "List.of()")
        return "@Nullable Json", f"Json.orNull(fields.value({quoted}))"

    def either(self, name: str, read: str, zero: str) -> tuple[str, str]:
        """A nullable type, or one with a value for an absent field."""
        if self.is_nullable():
            return f"@Nullable {name}", read
        unboxed = {"Long": "long", "Double": "double", "Boolean": "boolean"}.get(name, name)
        return unboxed, f"Fields.or({read}, {zero})"

    def component(self) -> str:
        """The declaration of the component."""
        named = "" if self.java == self.name else f'@Named("{self.name}") '
        return f"{named}{self.type} {self.java}"


def write_record(name: str, schema: dict[str, Any], defs: dict[str, Any]) -> str:
    """A record and its reader."""
    properties, required = fields_of(schema)
    fields = [Field(field, properties[field], field in required, defs) for field in sorted(properties)]
    lines = ["    /**", f"     * {text(schema, name + ', a part of a line.')}", "     *"]
    lines += [f"     * @param {field.java} {text(field.schema, 'the field ' + field.name)}" for field in fields]
    lines += ["     */", f"    public record {name}("]
    lines.append(",\n".join(f"            {field.component()}" for field in fields) + ") {")
    lines.append(f"        static {name} read(Fields fields) throws JsonException {{")
    lines.append(f"            return new {name}(")
    lines.append(",\n".join(f"                    {field.reader}" for field in fields) + ");")
    lines += ["        }", "    }"]
    return "\n".join(lines)


def generate() -> str:
    """The text of the file."""
    defs, kinds = definitions()
    parts = [HEADER.rstrip()]
    parts.append("\n".join(f'    static final String {constant(kind)} = "{kind}";' for kind in kinds))
    parts += [write_record(name, defs[name], defs) for name in sorted(defs) if fields_of(defs[name])[0]]
    return "\n\n".join(parts) + "\n}\n"


def main() -> int:
    """Writes or checks the file."""
    written = generate()
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == written:
            return 0
        print(f"{TARGET.relative_to(ROOT)} is out of date; run sdk/codegen/java.py", file=sys.stderr)
        return 1
    TARGET.write_text(written)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

import { asError } from '../errors.js';

/** A JSON Schema of draft 2020-12. */
export type JsonSchema = { readonly [key: string]: unknown };

interface StandardResult {
  readonly value?: unknown;
  readonly issues?: ReadonlyArray<{ readonly message: string; readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined }> | undefined;
}

/** A schema of a validation library that follows Standard Schema, such as zod 4 and zod 3.24. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly types?: { readonly output: Output } | undefined;
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>;
    readonly jsonSchema?: unknown;
  };
}

/** A zod schema of any version. */
export interface ZodLike<Output = unknown> {
  readonly _output: Output;
}

/** An object of zod schemas by name, as `z.object()` takes it. */
export type SchemaShape = { readonly [name: string]: StandardSchema | ZodLike };

/** What describes a value: a zod schema, the shape of a zod object, or a JSON Schema. */
export type SchemaInput = StandardSchema | ZodLike | SchemaShape | JsonSchema;

/** The type of a value that fits the schema; `unknown` for a JSON Schema. */
export type InferSchema<S> = S extends { readonly _output: infer Output }
  ? Output
  : S extends { readonly '~standard': { readonly types?: infer Types } }
    ? NonNullable<Types> extends { readonly output: infer Output }
      ? Output
      : unknown
    : S extends SchemaShape
      ? { -readonly [Name in keyof S]: InferSchema<S[Name]> }
      : unknown;

interface ZodDefinition {
  typeName?: string;
  type?: unknown;
  description?: string;
  [key: string]: unknown;
}

interface ZodInternals {
  _def?: ZodDefinition;
  _zod?: { def: ZodDefinition };
  description?: string;
  toJSONSchema?: (options: object) => object;
  safeParseAsync?: (value: unknown) => Promise<{ success: boolean; data?: unknown; error?: unknown }>;
  '~standard'?: StandardSchema['~standard'];
}

function isLibrarySchema(value: unknown): boolean {
  if (typeof value !== 'object' && typeof value !== 'function') return false;
  const schema = value as ZodInternals | null;
  return schema?.['~standard'] !== undefined || schema?._def !== undefined || schema?._zod !== undefined;
}

function isShape(schema: SchemaInput): schema is SchemaShape {
  const values = Object.values(schema);
  return values.length > 0 && values.every(isLibrarySchema);
}

/** The JSON Schema of what is given, as the worker and the model read it. */
export function toJsonSchema(schema: SchemaInput): JsonSchema {
  if (isLibrarySchema(schema)) return librarySchema(schema as ZodInternals);
  if (isShape(schema)) return objectSchema(schema);
  return schema as JsonSchema;
}

function librarySchema(schema: ZodInternals): JsonSchema {
  const own = ownConversion(schema);
  if (own === undefined) return convert(schema);
  const { '~standard': _marker, ...rest } = own as Record<string, unknown>;
  return rest;
}

/** The conversion that the library brings along: Standard JSON Schema, or zod's own method. */
function ownConversion(schema: ZodInternals): object | undefined {
  const standard = schema['~standard']?.jsonSchema as { input?: (options: object) => object } | undefined;
  if (typeof standard?.input === 'function') return standard.input({ target: 'draft-2020-12' });
  if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema({ io: 'input' });
  return undefined;
}

/** The kind of a zod schema, in the words of zod 4 (`object`), from those of zod 3 (`ZodObject`). */
function kindOf(def: ZodDefinition): string {
  const word = def.typeName ?? (typeof def.type === 'string' ? def.type : 'unknown');
  return word.replace(/^Zod/, '').toLowerCase();
}

function objectSchema(shape: Readonly<Record<string, unknown>>): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(shape)) {
    properties[name] = librarySchema(field as ZodInternals);
    if (!isOptional(field as ZodInternals)) required.push(name);
  }
  return { type: 'object', properties, required };
}

function definition(schema: ZodInternals): ZodDefinition {
  return schema._zod?.def ?? schema._def ?? {};
}

function isOptional(schema: ZodInternals): boolean {
  const def = definition(schema);
  switch (kindOf(def)) {
    case 'optional':
    case 'default':
    case 'prefault':
    case 'catch':
      return true;
    case 'nullable':
    case 'readonly':
      return isOptional(def.innerType as ZodInternals);
    default:
      return false;
  }
}

/** Converts a zod schema whose version has no conversion of its own. Kinds that have no JSON form allow anything. */
function convert(schema: ZodInternals): JsonSchema {
  const def = definition(schema);
  const description = schema.description ?? def.description;
  const body = convertKind(def);
  return description === undefined ? body : { ...body, description };
}

function convertKind(def: ZodDefinition): JsonSchema {
  const inner = (key: string): JsonSchema => convert(def[key] as ZodInternals);
  switch (kindOf(def)) {
    case 'string':
      return { type: 'string' };
    case 'number':
      return { type: hasIntegerCheck(def) ? 'integer' : 'number' };
    case 'boolean':
      return { type: 'boolean' };
    case 'null':
      return { type: 'null' };
    case 'literal': {
      const values = (def.values as unknown[] | undefined) ?? [def.value];
      return values.length === 1 ? { const: values[0] } : { enum: values };
    }
    case 'enum':
    case 'nativeenum':
      return { enum: Object.values((def.entries ?? def.values) as object) };
    case 'array':
      return { type: 'array', items: convert((def.element ?? def.type) as ZodInternals) };
    case 'tuple':
      return { type: 'array', prefixItems: (def.items as ZodInternals[]).map(convert) };
    case 'record':
      return { type: 'object', additionalProperties: inner('valueType') };
    case 'object': {
      const shape = typeof def.shape === 'function' ? (def.shape as () => object)() : (def.shape as object);
      return objectSchema(shape as Record<string, unknown>);
    }
    case 'union':
    case 'discriminatedunion': {
      const options = def.options as Iterable<ZodInternals> | Map<string, ZodInternals>;
      return { anyOf: [...(options instanceof Map ? options.values() : options)].map(convert) };
    }
    case 'intersection':
      return { allOf: [inner('left'), inner('right')] };
    case 'nullable':
      return { anyOf: [inner('innerType'), { type: 'null' }] };
    case 'optional':
    case 'default':
    case 'prefault':
    case 'catch':
    case 'readonly':
    case 'branded':
      return convert((def.innerType ?? def.type) as ZodInternals);
    case 'effects':
      return inner('schema');
    case 'pipeline':
    case 'pipe':
      return inner('in');
    case 'lazy':
      return convert((def.getter as () => ZodInternals)());
    default:
      return {};
  }
}

function hasIntegerCheck(def: ZodDefinition): boolean {
  const checks = (def.checks as Array<{ kind?: string }> | undefined) ?? [];
  return checks.some((check) => check.kind === 'int');
}

/** The value as the schema's library parses it; throws an error that says what does not fit. */
export async function validate(schema: SchemaInput, value: unknown): Promise<unknown> {
  if (isLibrarySchema(schema)) return validateWithLibrary(schema as ZodInternals, value);
  if (!isShape(schema)) return value;
  const fields = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  const parsed: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(schema)) {
    try {
      const result = await validateWithLibrary(field as ZodInternals, fields[name]);
      if (result !== undefined) parsed[name] = result;
    } catch (error) {
      throw new Error(`${name}: ${asError(error).message}`, { cause: error });
    }
  }
  return parsed;
}

async function validateWithLibrary(schema: ZodInternals, value: unknown): Promise<unknown> {
  const standard = schema['~standard'];
  if (standard !== undefined) {
    const result = await standard.validate(value);
    if (result.issues === undefined) return result.value;
    throw new Error(result.issues.map(issueText).join('; '));
  }
  const result = await schema.safeParseAsync?.(value);
  if (result === undefined) return value;
  if (result.success) return result.data;
  throw new Error(asError(result.error).message);
}

function issueText(issue: NonNullable<StandardResult['issues']>[number]): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return path === '' ? issue.message : `${path}: ${issue.message}`;
}

// Generates the wire types of the TypeScript SDK from the JSON Schemas of the `qwen` dialect.
//
//   node sdk/codegen/typescript.mjs           rewrite sdk/typescript/src/wire/generated.ts
//   node sdk/codegen/typescript.mjs --check   exit 1 when the committed file differs

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const target = join(root, 'sdk', 'typescript', 'src', 'wire', 'generated.ts');

/** The schemas in the order in which their definitions are written. `union` names the type of one line. */
const SCHEMAS = [
  { file: 'qwen-stream.json', union: 'StreamLine' },
  { file: 'qwen-stream-chunk.json', union: 'StreamChunkLine' },
  { file: 'qwen-input.json', union: 'InputLine' },
];

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

function comment(schema, indent) {
  const text = schema.description;
  return text ? `${indent}/** ${text.replaceAll('*/', '*\\/').replaceAll(/\s*\n\s*/g, ' ')} */\n` : '';
}

function objectType(schema, indent) {
  const inner = `${indent}  `;
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const key = IDENTIFIER.test(name) ? name : JSON.stringify(name);
    return `${comment(property, inner)}${inner}${key}${required.has(name) ? '' : '?'}: ${typeOf(property, inner)};\n`;
  });
  const extra = schema.additionalProperties;
  if (lines.length === 0) return `Record<string, ${extra && extra !== true ? typeOf(extra, indent) : 'unknown'}>`;
  if (extra) lines.push(`${inner}[key: string]: unknown;\n`);
  return `{\n${lines.join('')}${indent}}`;
}

function typeOf(schema, indent) {
  if (schema === true) return 'unknown';
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives) return [...new Set(alternatives.map((item) => typeOf(item, indent)))].join(' | ');
  if (Array.isArray(schema.type)) {
    return schema.type.map((type) => typeOf({ ...schema, type, description: undefined }, indent)).join(' | ');
  }
  switch (schema.type) {
    case undefined:
      return 'unknown';
    case 'object':
      return objectType(schema, indent);
    case 'array': {
      const item = typeOf(schema.items ?? true, indent);
      return /[|{]/.test(item) ? `Array<${item}>` : `${item}[]`;
    }
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    default:
      throw new Error(`codegen: the schema type ${JSON.stringify(schema.type)} has no TypeScript form yet`);
  }
}

function declaration(name, schema) {
  const head = comment(schema, '');
  const isRecord = schema.type === 'object' && Object.keys(schema.properties ?? {}).length > 0;
  return isRecord
    ? `${head}export interface ${name} ${objectType(schema, '')}\n`
    : `${head}export type ${name} = ${typeOf(schema, '')};\n`;
}

/** The words by which a line of the stream says what it is. */
function discriminators(schemas) {
  const words = new Set();
  for (const { schema } of schemas.filter(({ union }) => union !== 'InputLine')) {
    for (const item of schema.anyOf) {
      const properties = schema.$defs[item.$ref.split('/').at(-1)].properties;
      const marker = properties.type ?? properties.object;
      const resolved = marker?.$ref ? schema.$defs[marker.$ref.split('/').at(-1)] : marker;
      for (const option of resolved?.oneOf ?? []) words.add(option.const);
    }
  }
  return [...words].sort();
}

function generate() {
  const schemas = SCHEMAS.map((entry) => ({
    ...entry,
    schema: JSON.parse(readFileSync(join(root, 'schemas', entry.file), 'utf8')),
  }));
  const seen = new Map();
  const parts = [
    '// Generated from schemas/ by sdk/codegen/typescript.mjs. Do not edit: run `make bless-sdk-typescript`.\n',
    `/** The \`type\` (or \`object\`) of every line that a worker writes. */\nexport const STREAM_TYPES = ${JSON.stringify(
      discriminators(schemas), null, 2,
    ).replaceAll('"', "'")} as const;\n`,
  ];
  for (const { file, union, schema } of schemas) {
    for (const [name, definition] of Object.entries(schema.$defs)) {
      const text = declaration(name, definition);
      const earlier = seen.get(name);
      if (earlier === undefined) {
        seen.set(name, text);
        parts.push(text);
      } else if (earlier !== text) {
        throw new Error(`codegen: ${file} defines ${name} differently from an earlier schema`);
      }
    }
    parts.push(`/** ${schema.title}. */\nexport type ${union} =\n${schema.anyOf.map((item) => `  | ${typeOf(item, '')}`).join('\n')};\n`);
  }
  return parts.join('\n');
}

const text = generate();
if (process.argv.includes('--check')) {
  const committed = readFileSync(target, 'utf8');
  if (committed !== text) {
    process.stderr.write('sdk/typescript/src/wire/generated.ts is stale: run `make bless-sdk-typescript`\n');
    process.exitCode = 1;
  }
} else {
  writeFileSync(target, text);
}

import { ToolError, asError } from '../errors.js';
import { toJsonSchema, validate } from './schema.js';
import type { InferSchema, SchemaInput } from './schema.js';

/** A block of a tool's result, as MCP defines it. */
export type ToolContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | { readonly type: string; readonly [key: string]: unknown };

/** The full form of a tool's result. */
export interface ToolResult {
  readonly content: readonly ToolContent[];
  readonly isError?: boolean;
  readonly structuredContent?: Record<string, unknown>;
}

export interface ToolContext {
  /** Aborted when the turn ends or the call is cancelled. */
  readonly signal: AbortSignal;
  readonly sessionId: string;
  /** The W3C trace context of the call, when the worker traces. */
  readonly traceparent: string | undefined;
}

/** A function that the agent can call. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly input: SchemaInput;
  /** Hints for users and models, such as `readOnlyHint`. They grant nothing. */
  readonly annotations: Record<string, unknown> | undefined;
  run(args: unknown, context: ToolContext): Promise<ToolResult>;
}

/** A tool as it is written down. `run` may return a text, a `ToolResult`, or anything that JSON can hold. */
export interface ToolDefinition<S extends SchemaInput> {
  readonly name: string;
  readonly description: string;
  /** The arguments: a zod schema, an object of zod schemas, or a JSON Schema. */
  readonly input: S;
  readonly annotations?: Record<string, unknown>;
  readonly run: (args: InferSchema<S>, context: ToolContext) => unknown;
}

/**
 * Describes one tool; its arguments are validated before `run` sees them. What `run` throws is logged and reported to the
 * model without its text; a `ToolError` is reported with it.
 */
export function tool<const S extends SchemaInput>(definition: ToolDefinition<S>): Tool {
  const { name, description, input, annotations, run } = definition;
  if (typeof name !== 'string' || typeof run !== 'function') throw new TypeError('A tool is defined by one object: tool({ name, description, input, run })');
  return {
    name,
    description,
    input,
    annotations,
    async run(args, context) {
      let parsed: unknown;
      try {
        parsed = await validate(input, args);
      } catch (error) {
        return failure(`The arguments do not fit: ${asError(error).message}`);
      }
      try {
        return asResult(await run(parsed as InferSchema<S>, context));
      } catch (error) {
        if (error instanceof ToolError) return failure(error.message);
        throw error;
      }
    },
  };
}

export function failure(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

function asResult(value: unknown): ToolResult {
  if (typeof value === 'object' && value !== null && Array.isArray((value as { content?: unknown }).content)) {
    return value as ToolResult;
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value) as string | undefined) ?? '';
  return { content: [{ type: 'text', text }] };
}

/** Tools that run in this process. The agent sees them as `mcp__<name>__<tool>`. */
export interface ToolServer {
  readonly name: string;
  readonly version: string;
  readonly tools: readonly Tool[];
}

/** Groups tools into an in-process MCP server. */
export function defineTools(name: string, tools: readonly Tool[], options: { readonly version?: string } = {}): ToolServer {
  if (!/^[A-Za-z0-9_.-]+$/.test(name) || name.includes('__')) {
    throw new TypeError(`The tool server name ${JSON.stringify(name)} must match [A-Za-z0-9_.-]+ and not contain "__"`);
  }
  const names = new Set<string>();
  for (const { name: each } of tools) {
    if (names.has(each)) throw new TypeError(`The tool server ${name} has two tools named ${each}`);
    names.add(each);
  }
  return { name, version: options.version ?? '1.0.0', tools };
}

/** The description of a tool in `tools/list`. */
export function listing(each: Tool): Record<string, unknown> {
  const { name, description, annotations } = each;
  return { name, description, annotations, inputSchema: { type: 'object', ...toJsonSchema(each.input) } };
}

import { toJsonSchema } from './control/schema.js';
import type { SchemaInput } from './control/schema.js';
import type { TurnOptions } from './options.js';
import type { ChatRequest, RequestPart } from './wire/generated.js';

/** A part of a prompt. */
export type PromptPart =
  | { readonly type: 'text'; readonly text: string }
  /** `data` is base64. */
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  /** A file of this machine, which the worker reads. */
  | { readonly type: 'file'; readonly path: string };

export type Prompt = string | readonly PromptPart[];

/** One prompt, or several prompts, each of which is a separate turn. */
export type PromptInput = Prompt | AsyncIterable<Prompt>;

export function isPromptStream(input: PromptInput): input is AsyncIterable<Prompt> {
  return typeof input === 'object' && Symbol.asyncIterator in input;
}

const PART_TYPES: ReadonlySet<unknown> = new Set<PromptPart['type']>(['text', 'image', 'file']);

/** Throws a TypeError if the value is not a prompt. */
export function checkPrompt(input: unknown): void {
  if (typeof input === 'string') return;
  if (typeof input === 'object' && input !== null) {
    if (Symbol.asyncIterator in input) return;
    if (Array.isArray(input)) {
      const wrong: unknown = input.find((part: unknown) => !PART_TYPES.has((part as { type?: unknown } | null | undefined)?.type));
      if (wrong === undefined) return;
      throw new TypeError(`A prompt has the part ${brief(wrong)}; a part is an object with the type text, image or file`);
    }
    if ('prompt' in input) throw new TypeError('A prompt comes first and its options second: query(prompt, options)');
  }
  throw new TypeError(`A prompt is ${brief(input)}; it must be a text, an array of parts, or an async iterable of prompts`);
}

function brief(value: unknown): string {
  return (typeof value === 'object' && value !== null ? (JSON.stringify(value) as string | undefined) ?? 'an object' : String(value)).slice(0, 100);
}

function wirePart(part: PromptPart): RequestPart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'image':
      return { type: 'inline_data', inline_data: { data: part.data, mime_type: part.mimeType } };
    case 'file':
      return { type: 'file_data', file_data: { file_uri: part.path } };
  }
}

/** A prompt as the worker reads it; top-level keys of later protocol versions are allowed. */
export type PromptLine = ChatRequest & { delivery?: 'steer'; retry?: 'safe'; tenant?: string };

export function promptLine(
  sessionId: string,
  promptId: string,
  prompt: Prompt,
  options: TurnOptions<SchemaInput | undefined>,
): PromptLine {
  const parts = typeof prompt === 'string' ? [{ type: 'text', text: prompt }] : prompt.map(wirePart);
  const { outputSchema } = options;
  return {
    session_id: sessionId,
    prompt_id: promptId,
    model: options.model,
    input: { origin: 'user', parts },
    options: {
      temperature: options.temperature,
      max_tokens: options.maxTokens,
      effort: options.effort,
      tool_overrides: options.toolOverrides === undefined ? undefined : [...options.toolOverrides],
      response_format:
        outputSchema === undefined
          ? undefined
          : { type: 'json_schema', json_schema: { name: 'output', schema: { ...toJsonSchema(outputSchema) } } },
    },
  };
}

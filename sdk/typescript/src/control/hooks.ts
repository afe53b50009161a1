import type { ControlRequestLine } from '../wire/generated.js';
import type { CallbackContext } from './permissions.js';

/** The events of which hooks can be told. */
export const HOOK_EVENTS = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionRequest',
  'UserPromptSubmit',
  'SessionStart',
  'SessionEnd',
  'Stop',
  'SubagentStart',
  'SubagentStop',
  'PreCompact',
  'Notification',
] as const;

export type HookEventName = (typeof HOOK_EVENTS)[number];

/** Something that the agent is about to do, or did. */
export interface HookEvent {
  readonly name: HookEventName;
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly toolName: string | undefined;
  readonly toolInput: Record<string, unknown> | undefined;
  readonly toolCallId: string | undefined;
  readonly toolResponse: unknown;
  /** The user's prompt, for `UserPromptSubmit`. */
  readonly prompt: string | undefined;
  /** Every field as the worker sent it. */
  readonly input: Record<string, unknown>;
}

/** What a hook wants. Nothing means: go on. */
export interface HookResult {
  /** False ends the turn. */
  readonly continue?: boolean;
  readonly stopReason?: string;
  readonly decision?: 'block' | 'approve';
  readonly reason?: string;
  /** A message for users. */
  readonly systemMessage?: string;
  readonly suppressOutput?: boolean;
  readonly permissionDecision?: 'allow' | 'deny' | 'ask' | 'defer';
  readonly permissionDecisionReason?: string;
  /** Runs the tool with other arguments. */
  readonly updatedInput?: Record<string, unknown>;
  /** Gives the model another result. */
  readonly updatedToolOutput?: unknown;
  /** Tells the model something more. */
  readonly additionalContext?: string;
}

// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a hook may return nothing
export type HookHandler = (event: HookEvent, context: CallbackContext) => HookResult | void | Promise<HookResult | void>;

/** A hook and what it is called for. */
export interface HookMatcher {
  /** Tool names, such as `Edit|Write` or `mcp__*`; everything when absent. */
  readonly matcher?: string;
  readonly handler: HookHandler;
  /** Milliseconds until the worker continues without an answer; 60,000 if absent. */
  readonly timeoutMs?: number;
  /** What a failure means: `continue` (the default) or `block`. */
  readonly onFailure?: 'continue' | 'block';
}

export type HookTable = { readonly [Name in HookEventName]?: readonly HookMatcher[] };

/** The hooks of a session under the ids that the worker calls them by. */
export class HookRegistry {
  readonly #handlers = new Map<string, HookHandler>();
  readonly #declared: Record<string, object[]> = {};

  constructor(table: HookTable | undefined, onHookEvent: HookHandler | undefined) {
    checkTable(table ?? {});
    for (const name of HOOK_EVENTS) {
      for (const matcher of table?.[name] ?? []) this.#add(name, matcher);
      if (onHookEvent !== undefined) this.#add(name, { handler: onHookEvent });
    }
  }

  #add(name: HookEventName, { matcher, handler, timeoutMs, onFailure }: HookMatcher): void {
    const id = `hook_${String(this.#handlers.size)}`;
    this.#handlers.set(id, handler);
    (this.#declared[name] ??= []).push({ matcher, hookCallbackIds: [id], timeout_ms: timeoutMs, onFailure });
  }

  /** What `initialize` announces; nothing when there are no hooks. */
  get declared(): Record<string, object[]> | undefined {
    return this.#handlers.size > 0 ? this.#declared : undefined;
  }

  async call(line: ControlRequestLine, context: CallbackContext): Promise<Record<string, unknown>> {
    const handler = this.#handlers.get(line.callback_id ?? '');
    if (handler === undefined) throw new Error(`There is no hook ${String(line.callback_id)}`);
    const event = hookEvent(line);
    return hookAnswer(event.name, (await handler(event, context)) ?? {});
  }
}

/** Throws a TypeError for hooks that would never be called. */
function checkTable(table: object): void {
  for (const [name, matchers] of Object.entries(table) as Array<[string, unknown]>) {
    if (!(HOOK_EVENTS as readonly string[]).includes(name)) {
      throw new TypeError(`hooks has the event ${name}, which does not exist; there are ${HOOK_EVENTS.join(', ')}`);
    }
    for (const matcher of Array.isArray(matchers) ? (matchers as unknown[]) : [matchers]) {
      const handler = (matcher as { handler?: unknown } | null | undefined)?.handler;
      if (typeof handler !== 'function') throw new TypeError(`hooks.${name} must be an array of { matcher, handler }, and handler a function`);
    }
  }
}

function hookEvent(line: ControlRequestLine): HookEvent {
  const input = (line.input ?? {}) as Record<string, unknown>;
  const text = (key: string): string | undefined => (typeof input[key] === 'string' ? input[key] : undefined);
  return {
    name: (text('hook_event_name') ?? '') as HookEventName,
    sessionId: line.session_id,
    promptId: line.prompt_id ?? text('prompt_id'),
    toolName: text('tool_name'),
    toolInput: input.tool_input as Record<string, unknown> | undefined,
    toolCallId: text('tool_use_id') ?? line.tool_use_id ?? undefined,
    toolResponse: input.tool_response,
    prompt: text('prompt'),
    input,
  };
}

function hookAnswer(name: HookEventName, result: HookResult): Record<string, unknown> {
  const { permissionDecision, permissionDecisionReason, updatedInput, updatedToolOutput, additionalContext, ...rest } = result;
  const specific = { permissionDecision, permissionDecisionReason, updatedInput, updatedToolOutput, additionalContext };
  const isEmpty = Object.values(specific).every((value) => value === undefined);
  return isEmpty ? rest : { ...rest, hookSpecificOutput: { hookEventName: name, ...specific } };
}

import type { ConfirmationRecord, ControlRequestLine } from '../wire/generated.js';

export type PermissionMode = 'plan' | 'default' | 'auto-edit' | 'yolo';
export type PermissionBehavior = 'allow' | 'deny' | 'ask';

/** A call that needs permission. */
export interface PermissionRequest {
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly toolCallId: string | undefined;
  readonly toolName: string;
  readonly input: Record<string, unknown>;
  readonly reason: string;
  /** The path outside the workspace that the call would touch, where that is the reason. */
  readonly blockedPath: string | undefined;
  /** The sub-agent that makes the call. */
  readonly agentId: string | undefined;
  /** What a user can be shown: a diff, a command, an MCP call, a plan. */
  readonly confirmation: ConfirmationRecord | undefined;
}

/** The answer to a permission request. A bare word is the answer without further wishes. */
export type PermissionDecision =
  | PermissionBehavior
  | {
      readonly behavior: PermissionBehavior;
      /** What the model and the user are told about a refusal. */
      readonly message?: string;
      /** Runs the call with other arguments. They are judged again. */
      readonly updatedInput?: Record<string, unknown>;
      /** Rules that hold from now on for the session, such as `Bash(git *)`, with this behavior. */
      readonly rules?: readonly string[];
      /** A permission mode that holds from now on. */
      readonly mode?: PermissionMode;
      /** A refusal that ends the turn. */
      readonly interrupt?: boolean;
    };

export interface CallbackContext {
  /** Aborted when the answer is no longer needed: the turn ended, or the deadline passed. */
  readonly signal: AbortSignal;
}

export type PermissionHandler = (
  request: PermissionRequest,
  context: CallbackContext,
) => PermissionDecision | Promise<PermissionDecision>;

export function permissionRequest(line: ControlRequestLine): PermissionRequest {
  const metadata = line.metadata ?? undefined;
  return {
    sessionId: line.session_id,
    promptId: line.prompt_id ?? undefined,
    toolCallId: metadata?.tool_call_id ?? line.tool_use_id ?? undefined,
    toolName: line.tool?.name ?? '',
    input: line.tool?.arguments ?? {},
    reason: metadata?.reason ?? '',
    blockedPath: metadata?.blocked_path ?? undefined,
    agentId: metadata?.agent_id ?? undefined,
    confirmation: metadata?.confirmation ?? undefined,
  };
}

const BEHAVIORS: ReadonlySet<unknown> = new Set<PermissionBehavior>(['allow', 'deny', 'ask']);

/** The decision in the words of the protocol. */
export function permissionAnswer(decision: PermissionDecision): Record<string, unknown> {
  const given = typeof decision === 'string' ? decision : (decision as { behavior?: unknown } | undefined)?.behavior;
  if (!BEHAVIORS.has(given)) {
    throw new TypeError(`onPermissionRequest must return allow, deny or ask, or an object with one of them as its behavior; it returned ${JSON.stringify(decision)}`);
  }
  const { behavior, message, updatedInput, rules, mode, interrupt } =
    typeof decision === 'string' ? { behavior: decision } : decision;
  const updates: object[] = [];
  if (rules?.length) updates.push({ type: 'addRules', behavior, rules });
  if (mode !== undefined) updates.push({ type: 'setMode', mode });
  return {
    behavior: behavior === 'allow' ? 'approve' : behavior,
    message,
    updatedInput,
    interrupt,
    updatedPermissions: updates.length > 0 ? updates : undefined,
  };
}

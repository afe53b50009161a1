import { describeError } from '../errors.js';
import type { Logger } from '../logging.js';
import type { ControlRequestLine } from '../wire/generated.js';
import type { HookRegistry } from './hooks.js';
import type { JsonRpcMessage, McpEndpoint } from './mcp.js';
import { permissionAnswer, permissionRequest } from './permissions.js';
import type { PermissionHandler } from './permissions.js';

export interface ControlHandlers {
  readonly permission: PermissionHandler | undefined;
  readonly hooks: HookRegistry;
  readonly mcp: ReadonlyMap<string, McpEndpoint>;
}

/**
 * Answers the worker's questions. Each question runs beside the others and gets exactly one answer; a handler that
 * throws is an error answer, which the worker takes as no. A question that was taken back gets no answer.
 */
export class ControlChannel {
  readonly #handlers: ControlHandlers;
  readonly #send: (line: object) => void;
  readonly #logger: Logger;
  readonly #open = new Map<string, AbortController>();

  constructor(handlers: ControlHandlers, send: (line: object) => void, logger: Logger) {
    this.#handlers = handlers;
    this.#send = send;
    this.#logger = logger;
  }

  handle(line: ControlRequestLine): void {
    const controller = new AbortController();
    const { request_id: requestId, session_id: sessionId } = line;
    this.#open.set(requestId, controller);
    const respond = (response: object): void => {
      // A question that was taken back, or answered by a later one with its id, is not answered.
      if (this.#open.get(requestId) !== controller) return;
      this.#open.delete(requestId);
      this.#send({ type: 'control_response', request_id: requestId, session_id: sessionId, response });
    };
    this.#answer(line, controller.signal).then(
      (result) => { respond({ subtype: 'success', result }); },
      (error: unknown) => {
        // What the error contains is the host's: the worker may show an answer to the model.
        this.#logger.error('callback failed', { subtype: line.subtype, request_id: requestId, ...describeError(error) });
        const message = `The host's ${line.subtype} callback failed; its log has the error.`;
        respond({ subtype: 'error', error: { message, retryable: false } });
      },
    );
  }

  /** The worker no longer needs the answer. */
  cancel(requestId: string): void {
    this.#open.get(requestId)?.abort(new Error('The question was taken back'));
    this.#open.delete(requestId);
  }

  cancelAll(reason: Error): void {
    for (const controller of this.#open.values()) controller.abort(reason);
    this.#open.clear();
  }

  async #answer(line: ControlRequestLine, signal: AbortSignal): Promise<unknown> {
    switch (line.subtype) {
      case 'can_use_tool': {
        const handler = this.#handlers.permission;
        if (handler === undefined) return { behavior: 'deny', message: 'No permission handler is registered.' };
        return permissionAnswer(await handler(permissionRequest(line), { signal }));
      }
      case 'hook_callback':
        return this.#handlers.hooks.call(line, { signal });
      case 'mcp_message': {
        const endpoint = this.#handlers.mcp.get(line.server_name ?? '');
        if (endpoint === undefined) throw new Error(`There is no tool server ${String(line.server_name)}`);
        const context = { signal, sessionId: line.session_id };
        return { mcp_response: await endpoint.handle(line.message as JsonRpcMessage, context) };
      }
      default:
        throw new Error(`This SDK does not know the control request ${line.subtype}`);
    }
  }
}

import { asError, describeError } from '../errors.js';
import type { Logger } from '../logging.js';
import { failure, listing } from './tools.js';
import type { ToolServer } from './tools.js';

/** A JSON-RPC 2.0 message. */
export interface JsonRpcMessage {
  readonly jsonrpc?: string;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: { code: number; message: string; data?: unknown };
}

export interface McpCallContext {
  readonly signal: AbortSignal;
  readonly sessionId: string;
}

/** A server in this process that answers the worker's MCP messages. */
export interface McpEndpoint {
  handle(message: JsonRpcMessage, context: McpCallContext): Promise<JsonRpcMessage>;
  close(): void;
}

/** A server of the official MCP SDK (`McpServer`), or anything else that connects to a transport as it does. */
export interface McpServerInstance {
  connect(transport: McpInstanceTransport): Promise<void>;
  close?(): Promise<void>;
}

/** The transport interface of the official MCP SDK, as far as it is used. */
export interface McpInstanceTransport {
  start(): Promise<void>;
  send(message: unknown): Promise<void>;
  close(): Promise<void>;
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
}

const PROTOCOL_VERSION = '2025-06-18';
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/** Wraps a tool call, for example in a trace span. */
export type RunTool = <T>(name: string, traceparent: string | undefined, run: () => Promise<T>) => Promise<T>;

/** Serves the tools of `defineTools`. */
export class ToolEndpoint implements McpEndpoint {
  readonly #server: ToolServer;
  readonly #runTool: RunTool;
  readonly #logger: Logger;
  readonly #calls = new Map<string | number, AbortController>();

  constructor(server: ToolServer, runTool: RunTool, logger: Logger) {
    this.#server = server;
    this.#logger = logger;
    this.#runTool = runTool;
  }

  async handle(message: JsonRpcMessage, context: McpCallContext): Promise<JsonRpcMessage> {
    const id = message.id ?? null;
    const answer = (result: unknown): JsonRpcMessage => ({ jsonrpc: '2.0', id, result });
    const refuse = (code: number, text: string): JsonRpcMessage => ({ jsonrpc: '2.0', id, error: { code, message: text } });
    switch (message.method) {
      case 'initialize':
        return answer({
          protocolVersion: typeof message.params?.protocolVersion === 'string' ? message.params.protocolVersion : PROTOCOL_VERSION,
          capabilities: { tools: {} },
          serverInfo: { name: this.#server.name, version: this.#server.version },
        });
      case 'ping':
        return answer({});
      case 'tools/list':
        return answer({ tools: this.#server.tools.map(listing) });
      case 'tools/call':
        return this.#call(message, context, answer, refuse);
      case 'notifications/cancelled':
        this.#calls.get(message.params?.requestId as string | number)?.abort();
        return answer({});
      default:
        if (message.id === undefined) return answer({});
        return refuse(METHOD_NOT_FOUND, `There is no method ${String(message.method)}`);
    }
  }

  async #call(
    message: JsonRpcMessage,
    { signal, sessionId }: McpCallContext,
    answer: (result: unknown) => JsonRpcMessage,
    refuse: (code: number, text: string) => JsonRpcMessage,
  ): Promise<JsonRpcMessage> {
    const { name, arguments: args, _meta: meta } = (message.params ?? {}) as {
      name?: unknown;
      arguments?: unknown;
      _meta?: { traceparent?: unknown };
    };
    const found = this.#server.tools.find((tool) => tool.name === name);
    if (found === undefined) return refuse(INVALID_PARAMS, `There is no tool ${String(name)}`);
    const traceparent = typeof meta?.traceparent === 'string' ? meta.traceparent : undefined;
    const controller = new AbortController();
    const forward = (): void => { controller.abort(signal.reason); };
    if (signal.aborted) forward();
    signal.addEventListener('abort', forward, { once: true });
    if (message.id != null) this.#calls.set(message.id, controller);
    try {
      const context = { signal: controller.signal, sessionId, traceparent };
      return answer(await this.#runTool(found.name, traceparent, () => found.run(args ?? {}, context)));
    } catch (error) {
      // What the function threw is the host's: the model learns only that it failed.
      this.#logger.error('tool failed', { tool: found.name, server: this.#server.name, ...describeError(error) });
      return answer(failure(`The tool ${found.name} failed. Its program has logged why.`));
    } finally {
      signal.removeEventListener('abort', forward);
      if (message.id != null) this.#calls.delete(message.id);
    }
  }

  close(): void {
    for (const call of this.#calls.values()) call.abort();
  }
}

/** Connects a server of the official MCP SDK. */
export class InstanceEndpoint implements McpEndpoint {
  readonly #instance: McpServerInstance;
  readonly #transport: McpInstanceTransport;
  readonly #waiting = new Map<string | number, (message: JsonRpcMessage) => void>();
  #connected: Promise<void> | undefined;

  constructor(instance: McpServerInstance) {
    this.#instance = instance;
    this.#transport = {
      start: () => Promise.resolve(),
      close: () => Promise.resolve(),
      send: (message) => {
        const answer = message as JsonRpcMessage;
        // Requests and notifications of the server have no receiver: the worker offers it nothing.
        if (answer.method === undefined && answer.id != null) {
          this.#waiting.get(answer.id)?.(answer);
          this.#waiting.delete(answer.id);
        }
        return Promise.resolve();
      },
    };
  }

  async handle(message: JsonRpcMessage, { signal }: McpCallContext): Promise<JsonRpcMessage> {
    await (this.#connected ??= this.#instance.connect(this.#transport));
    const deliver = this.#transport.onmessage as ((message: unknown) => void) | undefined;
    const id = message.id;
    if (id == null) {
      deliver?.(message);
      return { jsonrpc: '2.0', id: 0, result: {} };
    }
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        this.#waiting.delete(id);
        reject(asError(signal.reason));
      };
      signal.addEventListener('abort', abandon, { once: true });
      this.#waiting.set(id, (answer) => {
        signal.removeEventListener('abort', abandon);
        resolve(answer);
      });
      deliver?.(message);
    });
  }

  close(): void {
    void this.#instance.close?.().catch(() => undefined);
  }
}

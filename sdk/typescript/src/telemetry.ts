import type * as OpenTelemetry from '@opentelemetry/api';
import type { Context, Counter, Histogram, Span } from '@opentelemetry/api';
import type { TurnResult } from './wire/messages.js';

type Api = typeof OpenTelemetry;

const SCOPE = '@qwen-agent/sdk';
/** Where the OpenTelemetry API keeps what the host registered, whichever copy of it the host loaded. */
const REGISTRY = Symbol.for('opentelemetry.js.api.1');

let api: Promise<Api | undefined> | undefined;

/** The OpenTelemetry API, when the host has registered a provider with it. Otherwise nothing is loaded. */
function loadApi(): Promise<Api | undefined> {
  if ((globalThis as Record<symbol, unknown>)[REGISTRY] === undefined) return Promise.resolve(undefined);
  return (api ??= import('@opentelemetry/api').catch(() => undefined));
}

interface Instruments {
  readonly turns: Counter;
  readonly duration: Histogram;
  readonly tokens: Counter;
  readonly restarts: Counter;
  readonly transportErrors: Counter;
}

let instruments: Instruments | undefined;

function instrumentsOf({ metrics }: Api): Instruments {
  const meter = metrics.getMeter(SCOPE);
  return (instruments ??= {
    turns: meter.createCounter('qwen.sdk.turns', { description: 'Turns by status' }),
    duration: meter.createHistogram('qwen.sdk.turn.duration', { unit: 'ms', description: 'Time from prompt to result' }),
    tokens: meter.createCounter('qwen.sdk.tokens', { description: 'Tokens by kind' }),
    restarts: meter.createCounter('qwen.sdk.worker.restarts', { description: 'Workers started again after a crash' }),
    transportErrors: meter.createCounter('qwen.sdk.transport.errors', { description: 'Workers that ended unexpectedly' }),
  });
}

/** The span of a turn. */
export interface TurnSpan {
  /** The W3C trace context for the worker. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  end(outcome: TurnResult | Error | undefined): void;
}

const NO_SPAN: TurnSpan = { traceparent: undefined, tracestate: undefined, end: () => undefined };

/** Starts the span of a turn below the span that is active in the caller. */
export async function startTurnSpan(sessionId: string, promptId: string): Promise<TurnSpan> {
  const loaded = await loadApi();
  if (loaded === undefined) return NO_SPAN;
  const { trace, context, propagation } = loaded;
  const span = trace.getTracer(SCOPE).startSpan('qwen.turn', {
    attributes: { 'gen_ai.conversation.id': sessionId, 'session.id': sessionId, 'qwen.prompt_id': promptId },
  });
  const carrier: { traceparent?: string; tracestate?: string } = {};
  propagation.inject(trace.setSpan(context.active(), span), carrier);
  const started = Date.now();
  return {
    traceparent: carrier.traceparent ?? traceparentOf(span),
    tracestate: carrier.tracestate,
    end: (outcome) => { endTurnSpan(loaded, span, outcome, Date.now() - started); },
  };
}

function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return /^0+$/.test(traceId) ? undefined : `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

function endTurnSpan(loaded: Api, span: Span, outcome: TurnResult | Error | undefined, durationMs: number): void {
  const { SpanStatusCode } = loaded;
  const { turns, duration, tokens } = instrumentsOf(loaded);
  let status = 'closed';
  if (outcome instanceof Error) {
    status = 'exception';
    span.recordException(outcome);
    span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.message });
  } else if (outcome !== undefined) {
    status = outcome.status;
    const { usage } = outcome;
    span.setAttributes({
      'qwen.status': outcome.status,
      'qwen.permission_denials': outcome.permissionDenials.length,
      ...(usage && { 'gen_ai.usage.input_tokens': usage.prompt_tokens, 'gen_ai.usage.output_tokens': usage.completion_tokens }),
    });
    if (usage) {
      tokens.add(usage.prompt_tokens, { kind: 'input' });
      tokens.add(usage.completion_tokens, { kind: 'output' });
    }
    if (outcome.isError) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.error?.code ?? outcome.status });
  }
  turns.add(1, { status });
  duration.record(durationMs, { status });
  span.end();
}

/** Runs a tool of this process in a span below the worker's span of the call. */
export async function runToolInSpan<T>(name: string, traceparent: string | undefined, run: () => Promise<T>): Promise<T> {
  const loaded = await loadApi();
  if (loaded === undefined) return run();
  const { trace, context, SpanKind } = loaded;
  const parent = remoteContext(loaded, traceparent);
  const span = trace.getTracer(SCOPE).startSpan(`execute_tool ${name}`, { kind: SpanKind.INTERNAL, attributes: { 'gen_ai.tool.name': name } }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), run);
  } finally {
    span.end();
  }
}

function remoteContext({ trace, context }: Api, traceparent: string | undefined): Context {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '');
  if (match === null) return context.active();
  const [, traceId = '', spanId = '', flags = '0'] = match;
  return trace.setSpanContext(context.active(), { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true });
}

/** Counts a worker that ended unexpectedly, and one that was started again for it. */
export function countWorker(event: 'crashed' | 'restarted'): void {
  void loadApi().then((loaded) => {
    if (loaded === undefined) return;
    const { restarts, transportErrors } = instrumentsOf(loaded);
    (event === 'crashed' ? transportErrors : restarts).add(1);
  });
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { LaunchPlan, Logger, Transport } from '@qwen-agent/sdk';
import { call, place, say, sdk } from './harness.js';

test('the logger of the host gets structured entries', async (t) => {
  const at = await place(t, [say('hi')]);
  const entries: Array<{ level: string; message: string; fields: Record<string, unknown> | undefined }> = [];
  const entry = (level: string) => (message: string, fields?: Record<string, unknown>): void => { entries.push({ level, message, fields }); };
  const logger: Logger = { debug: entry('debug'), info: entry('info'), warn: entry('warn'), error: entry('error') };
  const session = await at.manager({ logger }).createSession();
  const result = await session.run('hello');
  const end = entries.find(({ message }) => message === 'turn ended');
  assert.equal(end?.level, 'info');
  assert.deepEqual([end.fields?.session_id, end.fields?.prompt_id, end.fields?.status], [session.id, result.promptId, 'done']);
  assert.equal(typeof end.fields?.duration_ms, 'number');
});

test('enableVerboseLogging writes JSON lines to standard error', async (t) => {
  const at = await place(t, [say('hi')]);
  const lines: string[] = [];
  t.mock.method(process.stderr, 'write', (text: string) => lines.push(text));
  sdk.enableVerboseLogging();
  t.after(() => { sdk.enableVerboseLogging(false); });
  await (await at.manager().createSession()).run('hello');
  const events = lines.map((line) => JSON.parse(line) as { event: string; level: string });
  assert.ok(events.some(({ event, level }) => event === 'worker started' && level === 'info'));
});

test('the standard error of the worker reaches the host', async (t) => {
  const at = await place(t, [say('hi')]);
  let seen = '';
  const session = await at.manager({ extraArgs: ['--debug'], stderr: (text) => { seen += text; } }).createSession();
  await session.run('hello');
  await session.close();
  assert.notEqual(seen, '');
});

test('a transport of the host carries the lines', async (t) => {
  const at = await place(t, [say('hi')]);
  const plans: LaunchPlan[] = [];
  let written = 0;
  const transport = (plan: LaunchPlan): Transport => {
    plans.push(plan);
    const inner = new sdk.ProcessTransport(plan);
    const write = inner.write.bind(inner);
    inner.write = (line) => { written += 1; return write(line); };
    return inner;
  };
  const session = await at.manager({ transport }).createSession();
  assert.equal((await session.run('hello')).text, 'hi');
  assert.ok(plans[0]?.args.includes('--dialect') && written >= 2);
  for (const name of ['pause', 'setRef', 'resume'] as const) assert.equal(typeof sdk.ProcessTransport.prototype[name], 'function');
});

interface WorkerSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}

function workerSpans(file: string): WorkerSpan[] {
  const batches = readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as { resourceSpans: Array<{ scopeSpans: Array<{ spans: WorkerSpan[] }> }> });
  return batches.flatMap(({ resourceSpans }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
}

test('one trace leads from the span of the host to the tool, and turns are counted', async (t) => {
  const at = await place(t, [say(call('mcp__calc__add')), say('done')]);
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 })] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  metrics.setGlobalMeterProvider(meters);
  t.after(async () => {
    trace.disable();
    context.disable();
    metrics.disable();
    await meters.shutdown();
  });
  const file = join(at.home, 'spans.jsonl');
  let isInTrace = false;
  const add = sdk.tool({ name: 'add', description: 'Adds', input: {}, run: () => { isInTrace = trace.getActiveSpan() !== undefined; return 3; } });
  const session = await at
    .manager({ permissionMode: 'yolo', tools: [sdk.defineTools('calc', [add])], extraArgs: ['--telemetry', `--telemetry-outfile=${file}`] })
    .createSession();
  const root = trace.getTracer('host').startSpan('request');
  await context.with(trace.setSpan(context.active(), root), () => session.run('go'));
  root.end();
  await session.close();

  const own = exporter.getFinishedSpans();
  const turn = own.find(({ name }) => name === 'qwen.turn');
  const tool = own.find(({ name }) => name === 'execute_tool add');
  assert.ok(turn && tool);
  const parentOf = (span: typeof turn): string | undefined => span.parentSpanContext?.spanId;
  assert.equal(parentOf(turn), root.spanContext().spanId);
  const inWorker = workerSpans(file);
  const agent = inWorker.find(({ name }) => name.startsWith('invoke_agent'));
  const executed = inWorker.find(({ name }) => name.startsWith('execute_tool'));
  assert.equal(agent?.parentSpanId, turn.spanContext().spanId);
  assert.equal(executed?.parentSpanId, agent.spanId);
  assert.equal(parentOf(tool), executed.spanId);
  assert.ok(isInTrace);
  for (const { traceId } of inWorker) assert.equal(traceId, root.spanContext().traceId);

  await meters.forceFlush();
  const names = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics.map(({ descriptor }) => descriptor.name)));
  for (const name of ['qwen.sdk.turns', 'qwen.sdk.turn.duration', 'qwen.sdk.tokens']) assert.ok(names.includes(name), names.join());
});

// One measurement in a process of its own: node drive.mjs MODE SUBJECT BINARY SCRIPT
//
// MODE `stream` prints events and the processor time that they cost this process; `cold` the milliseconds from the start
// of the import to the first message; `sessions` what many sessions at once cost. SUBJECT is the entry file of an SDK.

import { pathToFileURL } from 'node:url';

const [mode, subject, binary, script, count] = process.argv.slice(2);
const begun = performance.now();
const isPeer = subject.includes('qwen-code');
const { createAgentManager, query } = await import(pathToFileURL(subject).href);

function messages() {
  if (!isPeer) return query('go', { binaryPath: binary, model: `script:${script}` });
  const options = { pathToQwenExecutable: binary, model: `script:${script}`, includePartialMessages: true, env: process.env };
  return query({ prompt: 'go', options });
}

const isPiece = (message) => message.type === 'text' || (message.type === 'stream_event' && message.event.type === 'content_block_delta');

if (mode === 'cold') {
  for await (const message of messages()) {
    if (!isPiece(message)) continue;
    process.stdout.write(JSON.stringify({ milliseconds: performance.now() - begun }));
    process.exit(0);
  }
} else if (mode === 'stream') {
  let events = 0;
  const before = process.cpuUsage();
  for await (const message of messages()) if (isPiece(message)) events += 1;
  const { user, system } = process.cpuUsage(before);
  process.stdout.write(JSON.stringify({ events, microseconds: user + system }));
} else {
  const manager = createAgentManager({ binaryPath: binary, model: `script:${script}`, timeouts: { start: 60_000 } });
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const started = performance.now();
  const sessions = await Promise.all(Array.from({ length: Number(count) }, () => manager.createSession()));
  const results = await Promise.all(sessions.map((session) => session.run('go')));
  const milliseconds = performance.now() - started;
  const bytes = (process.memoryUsage().rss - before) / sessions.length;
  process.stdout.write(JSON.stringify({ done: results.filter(({ ok }) => ok).length, milliseconds, bytes }));
  await manager.close();
}

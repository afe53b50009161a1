import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { findChromium, openPage } from './chromium.js';
import { binary, call, exitOf, format, packageRoot, repositoryRoot, say, sdk, signal, temporaryDirectory } from './harness.js';
import type { Reply } from './harness.js';

const examples = join(repositoryRoot, 'examples', 'typescript');
const tsx = createRequire(import.meta.url).resolve('tsx');
const tested = new Set<string>();

interface Run {
  child: ChildProcessWithoutNullStreams;
  work: string;
  home: string;
}

/** Starts a copy of an example in a project that has the SDK installed, with a scripted model. */
function start(t: TestContext, name: string, replies: Reply[], args: string[] = [], source?: string): Run {
  tested.add(name);
  const root = temporaryDirectory(t, () => {
    child.kill('SIGKILL');
    return exitOf(child);
  });
  const [work, home] = [join(root, 'work'), join(root, 'home')];
  mkdirSync(join(root, 'node_modules', '@qwen-agent'), { recursive: true });
  mkdirSync(work);
  mkdirSync(home);
  symlinkSync(packageRoot, join(root, 'node_modules', '@qwen-agent', 'sdk'));
  symlinkSync(join(packageRoot, 'node_modules', 'zod'), join(root, 'node_modules', 'zod'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  const file = join(root, name);
  if (source === undefined) copyFileSync(join(examples, name), file);
  else writeFileSync(file, source);
  const script = join(root, 'script.json');
  writeFileSync(script, JSON.stringify({ turns: replies }));
  const env = { PATH: process.env.PATH, HOME: home, QWEN_BIN: binary, QWEN_EXAMPLE_MODEL: replies.length > 0 ? `script:${script}` : undefined, PORT: '0' };
  const child = spawn(process.execPath, ['--import', tsx, file, ...args], { cwd: work, env, stdio: 'pipe' });
  return { child, work, home };
}

async function outputOf({ child }: Run, input = ''): Promise<{ code: number | null; stdout: string; stderr: string }> {
  child.stdin.end(input);
  const [stdout, stderr, { code }] = await Promise.all([text(child.stdout), text(child.stderr), exitOf(child)]);
  return { code, stdout, stderr };
}

async function succeed(run: Run, input?: string): Promise<string> {
  const { code, stdout, stderr } = await outputOf(run, input);
  assert.equal(code, 0, stderr);
  return stdout;
}

// Examples are ES modules; the CJS half of the suite has nothing to add to them.
const options = { skip: format === 'cjs' };

test('the quick start streams an answer', options, async (t) => {
  assert.match(await succeed(start(t, 'quickstart.ts', [say('All ', 'is well.')])), /All is well\./);
});

test('the six lines of the README work as printed', options, async (t) => {
  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8');
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  assert.ok(code.trim().split('\n').filter((line) => line !== '').length <= 6);
  assert.ok((await succeed(start(t, 'readme.ts', [], [], code))).length > 0);
});

test('the other blocks of the README work as printed', options, async (t) => {
  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8');
  const [first = '', turns = '', tools = '', ...more] = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((block) => block[1]);
  assert.deepEqual(more, []);
  const close = 'await manager.close();\n';
  assert.ok(first.endsWith(close));
  const session = `${first.slice(0, -close.length)}${turns}console.log(result.ok);\n${close}`;
  assert.match(await succeed(start(t, 'turns.ts', [], [], session)), /true\n$/);
  const named = tools.replace('createAgentManager({', 'createAgentManager({\n  model: process.env.QWEN_EXAMPLE_MODEL,');
  const calculator = `${named}console.log((await manager.run('Add 2 and 3')).text);\n${close}`;
  const replies = [say(call('mcp__calculator__add', { a: 2, b: 3 })), say({ expect: { contains: '5' } }, 'It is 5.')];
  assert.match(await succeed(start(t, 'tools.ts', replies, [], calculator)), /It is 5\./);
});

test('the permission dialog shows the change and takes the answer', options, async (t) => {
  const write = call('write_file', { file_path: 'notes.txt', content: 'two\n' });
  const dialog = async (run: Run, answer: string): Promise<string> => {
    let shown = '';
    run.child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString('utf8');
      if (shown.endsWith('[y/n/a] ')) run.child.stdin.write(answer);
    });
    assert.equal((await exitOf(run.child)).code, 0);
    return shown;
  };
  const yes = start(t, 'permission_dialog.ts', [say(write), say('Changed.')]);
  assert.match(await dialog(yes, 'y\n'), /\+two[\s\S]*Allow write_file\?[\s\S]*Changed\./);
  assert.ok(existsSync(join(yes.work, 'notes.txt')));
  const no = start(t, 'permission_dialog.ts', [say(write), say('As you wish.')]);
  assert.match(await dialog(no, 'n\n'), /denied: write_file/);
  assert.ok(!existsSync(join(no.work, 'notes.txt')));
});

test('the calculator runs in process', options, async (t) => {
  const expect = { expect: { contains: '5' } };
  const out = await succeed(start(t, 'mcp_calculator.ts', [say(call('mcp__calculator__add', { a: 2, b: 3 })), say(expect, 'It is 5.')]));
  assert.match(out, /add\(\{"a":2,"b":3\}\)\nIt is 5\./);
});

test('the hooks protect a directory', options, async (t) => {
  const write = (path: string): Reply => say(call('write_file', { file_path: path, content: 'x' }));
  const run = start(t, 'hooks.ts', [write('secrets/key.txt'), write('open.txt'), say('One of two.')]);
  assert.match(await succeed(run), /ran write_file\nOne of two\./);
  assert.ok(existsSync(join(run.work, 'open.txt')) && !existsSync(join(run.work, 'secrets')));
});

test('the pool answers every user', options, async (t) => {
  const out = await succeed(start(t, 'pool.ts', Array.from({ length: 12 }, () => say('Hello'))));
  assert.equal(out.trim().split('\n').filter((line) => line.endsWith(': done')).length, 12);
});

test('resume and fork go on with what they know', options, async (t) => {
  const out = await succeed(start(t, 'resume_and_fork.ts', [say('first'), say('second')]));
  assert.match(out, /resumed: first\nfork: first/);
});

test('structured output is printed as data, or is an error', options, async (t) => {
  const good = { verdict: 'approve', findings: [{ file: 'a.ts', line: 3, comment: 'fine' }] };
  assert.match(await succeed(start(t, 'structured_output.ts', [say(call('structured_output', good))])), /approve\na\.ts:3 fine/);
  const bad = await outputOf(start(t, 'structured_output.ts', Array.from({ length: 6 }, () => say('no'))));
  assert.equal(bad.code, 1);
});

test('sub-agents are shown below the call that started them', options, async (t) => {
  const delegate = call('agent', { description: 'review', prompt: 'Review', subagent_type: 'reviewer' });
  const out = await succeed(start(t, 'sub_agents.ts', [say(delegate), say(call('grep_search', { pattern: 'x' })), say('Fine.'), say('The reviewer is content.')]));
  assert.match(out, /agent executing[\s\S]* {2}grep_search success[\s\S]*The reviewer is content\. \(4 model calls\)/);
});

test('the thought tree grows and ends in an answer', options, async (t) => {
  const out = await succeed(start(t, 'thought_tree.ts', []));
  assert.match(out, /Custom|thought/);
  assert.match(out, /answer: .+/);
});

test('the chat bot answers line by line', options, async (t) => {
  const run = start(t, 'chat_bot.ts', [say('Hello yourself.')]);
  const answered = signal();
  let shown = '';
  run.child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString('utf8');
    if (shown.includes('Hello yourself.\n> ')) answered.open();
  });
  run.child.stdin.write('hello\n');
  await answered.promise;
  run.child.stdin.end();
  assert.equal((await exitOf(run.child)).code, 0);
});

test('the review of a diff fails when there are findings', options, async (t) => {
  const finding = { findings: [{ file: 'a.ts', comment: 'off by one' }] };
  const bad = await outputOf(start(t, 'review_diff.ts', [say({ expect: { contains: '+ i <= n' } }, call('structured_output', finding))]), '+ i <= n');
  assert.deepEqual([bad.code, bad.stdout], [1, '::warning file=a.ts::off by one\n']);
  assert.equal((await outputOf(start(t, 'review_diff.ts', [say(call('structured_output', { findings: [] }))]), 'x')).code, 0);
});

test('a recorded session is replayed without a model', options, async (t) => {
  const run = start(t, 'replay.ts', [], ['recorded-1']);
  // Read from the start: what an ended process wrote unread is dropped.
  const reading = outputOf(run);
  const script = join(run.home, 'script.json');
  writeFileSync(script, JSON.stringify({ turns: [say(call('list_directory', { path: '.' })), say('Nothing here.')] }));
  const env = { HOME: run.home, QWEN_HOME: undefined };
  const session = await sdk.createAgentManager({ binaryPath: binary, model: `script:${script}`, cwd: run.work, env }).createSession({ sessionId: 'recorded-2' });
  await session.run('look');
  await session.close();
  const missing = await reading;
  assert.notEqual(missing.code, 0);
  assert.match(missing.stderr, /recorded-1/);
  const messages: string[] = [];
  for await (const message of sdk.createAgentManager({ binaryPath: binary, env }).replaySession('recorded-2')) {
    if (message.type === 'text') messages.push(message.text);
    if (message.type === 'result') messages.push(message.result.status);
  }
  assert.deepEqual(messages, ['Nothing here.', 'done']);
});

test('an answer streams to a web page', options, async (t) => {
  const run = start(t, 'web_stream.ts', [say('Hello ', 'page')]);
  const address = await new Promise<string>((resolve) => {
    run.child.stdout.once('data', (chunk: Buffer) => { resolve(chunk.toString('utf8').trim()); });
  });
  const events = await (await fetch(`${address}/stream?prompt=hi`)).text();
  assert.match(events, /event: text\ndata: "Hello "\n\nevent: text\ndata: "page"/);
  assert.match(events, /event: result\ndata: \{"status":"done"/);
  run.child.kill('SIGTERM');
  await exitOf(run.child);
});

const browser = findChromium();

test('an answer streams to a web page in a real browser', { skip: format === 'cjs' || (browser === undefined && 'there is no Chromium') }, async (t) => {
  const run = start(t, 'web_stream.ts', [say('Hello ', 'page')]);
  const address = await new Promise<string>((resolve) => {
    run.child.stdout.once('data', (chunk: Buffer) => { resolve(chunk.toString('utf8').trim()); });
  });
  const page = await openPage(t, browser ?? '', address);
  const shown = await page.evaluate(`new Promise((resolve) => {
    const look = () => {
      const status = document.querySelector('#status')?.textContent;
      if (status === 'done') return resolve([document.querySelector('#answer').textContent, status]);
      if (status === '') document.querySelector('form').requestSubmit();
      setTimeout(look, 20);
    };
    look();
  })`);
  assert.deepEqual(shown, ['Hello page', 'done']);
  run.child.kill('SIGTERM');
  await exitOf(run.child);
});

test('every example is tested', options, () => {
  assert.deepEqual(readdirSync(examples).filter((name) => name.endsWith('.ts') && !tested.has(name)), []);
});

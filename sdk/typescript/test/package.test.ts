import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { binary, format, packageRoot, repositoryRoot, temporaryDirectory } from './harness.js';

/** The program without its debug information, which would only make the package large. */
function slimBinary(directory: string): string {
  const path = join(directory, 'qwen');
  try {
    execFileSync('strip', ['-o', path, binary]);
  } catch {
    copyFileSync(binary, path);
  }
  return path;
}

test('the built packages work in a clean project without a compiler', { skip: format === 'cjs' }, (t) => {
  const root = temporaryDirectory(t);
  const [packages, project, home] = [join(root, 'packages'), join(root, 'project'), join(root, 'home')];
  for (const directory of [packages, project, home]) mkdirSync(directory);
  const pack = join(packageRoot, 'scripts', 'pack.mjs');
  const archives = execFileSync(process.execPath, [pack, slimBinary(root), packages], { encoding: 'utf8' }).trim().split('\n');
  assert.equal(archives.length, 2);

  // Only node and npm: nothing that could build something, and no qwen.
  const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: home, npm_config_cache: join(root, 'cache'), npm_config_update_notifier: 'false' };
  writeFileSync(join(project, 'package.json'), '{"name":"clean","private":true}');
  execFileSync('npm', ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...archives], { cwd: project, env });

  const readme = readFileSync(join(packageRoot, 'README.md'), 'utf8');
  const quickStart = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  writeFileSync(join(project, 'quickstart.mjs'), quickStart);
  assert.match(execFileSync(process.execPath, ['quickstart.mjs'], { cwd: project, env, encoding: 'utf8' }), /\w+/);

  writeFileSync(join(project, 'quickstart.cjs'), `const { createAgentManager } = require('@qwen-agent/sdk');
    (async () => {
      const manager = createAgentManager({ model: 'demo' });
      console.log((await manager.run('Hello')).status);
      await manager.close();
    })();`);
  assert.equal(execFileSync(process.execPath, ['quickstart.cjs'], { cwd: project, env, encoding: 'utf8' }).trim(), 'done');

  // `npx @qwen-agent/sdk --acp` runs this command, which ends with its input.
  const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n';
  const command = join(project, 'node_modules', '.bin', 'qwen');
  const answer = execFileSync(command, ['--acp', '--model', 'demo'], { cwd: project, env, input: hello, encoding: 'utf8' });
  assert.match(answer, /"protocolVersion":1/);

  const installed = JSON.parse(readFileSync(join(project, 'node_modules', '@qwen-agent', 'sdk', 'package.json'), 'utf8')) as {
    version: string;
    optionalDependencies: Record<string, string>;
    dependencies?: object;
    scripts?: object;
  };
  assert.deepEqual([installed.dependencies, installed.scripts], [undefined, undefined]);
  for (const version of Object.values(installed.optionalDependencies)) assert.equal(version, installed.version);
});

interface Row {
  id: string;
  cell: string;
}

function typescriptColumn(): Row[] {
  const rows: Row[] = [];
  for (const line of readFileSync(join(repositoryRoot, 'sdk', 'BEHAVIOURS.md'), 'utf8').split('\n')) {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    if (cells.length >= 7 && cells[1] !== 'id' && !/^-+$/.test(cells[1] ?? '')) rows.push({ id: cells[1] ?? '', cell: cells[4] ?? '' });
  }
  return rows;
}

test('the list of shared behaviours names tests that exist', () => {
  const rows = typescriptColumn();
  assert.ok(rows.length > 40);
  for (const { id, cell } of rows) {
    assert.notEqual(cell, '', `the behaviour ${id} has no test`);
    if (cell === '–') continue;
    const [file = '', ...title] = cell.replaceAll('`', '').split(': ');
    const source = readFileSync(join(packageRoot, 'test', `${file}.test.ts`), 'utf8');
    assert.ok(source.includes(title.join(': ')), `${id}: ${cell}`);
  }
});

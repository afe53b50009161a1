// Programs that are not a hub: each is an error that names its cause, soon, and leaves no process. The list is shared by the
// languages.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repositoryRoot, sdk, temporaryDirectory, until } from './harness.js';

interface Program {
  kind: string;
  script: string | null;
  /** A pattern that the error must match. */
  cause: string;
}

const programs = JSON.parse(readFileSync(join(repositoryRoot, 'sdk', 'broken-programs.json'), 'utf8')) as Program[];

/** True while a member of a process group lives. */
function lives(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

test('the list of broken programs has twenty kinds', () => {
  assert.ok(programs.length >= 20);
});

for (const { kind, script, cause } of programs) {
  test(`a broken program (${kind}) is an error that names its cause`, async (t) => {
    const folder = temporaryDirectory(t);
    const [path, pids] = [join(folder, 'broken'), join(folder, 'pid')];
    writeFileSync(path, script === null ? '\x7fELF nonsense' : `#!/bin/sh\necho $$ > ${pids}\n${script}\n`);
    chmodSync(path, 0o755);
    const manager = sdk.createAgentManager({ binaryPath: path, timeouts: { start: 1000, close: 1000 } });
    const began = performance.now();
    await assert.rejects(manager.createSession(), (error: Error) => {
      assert.match(`${error.message}\n${(error as { stderr?: string }).stderr ?? ''}`, new RegExp(cause));
      return true;
    });
    const took = performance.now() - began;
    assert.ok(took < 3000, `it took ${String(took)} ms`);
    await manager.close();
    if (existsSync(pids)) await until('its processes end', () => !lives(Number(readFileSync(pids, 'utf8'))));
  });
}

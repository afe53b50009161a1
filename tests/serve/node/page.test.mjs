// The page in the system's Chromium, at the width of a desk and of a phone.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const url = process.env.QWEN_SERVE_URL;
const token = process.env.QWEN_SERVE_TOKEN;
const screenshots = process.env.QWEN_SERVE_SCREENSHOTS;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const workspace = process.env.QWEN_SERVE_WORKSPACE;
const made = join(workspace, 'made.txt');
const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
let browser;

before(async () => {
  assert.ok(executablePath, 'install chromium (tests/setup)');
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
});
after(() => browser?.close());

/** The page of a new session; every request and every error of the page is kept. */
async function opened(width = 1280) {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  page.setDefaultTimeout(15_000);
  const seen = { requests: [], errors: [] };
  page.on('request', (request) => seen.requests.push(request.url()));
  page.on('pageerror', (error) => seen.errors.push(error.message));
  await page.goto(`${url}/#token=${token}`);
  await page.waitForSelector('#app:not([hidden])');
  // On a phone, the sessions are behind a button.
  if (width <= 700) await page.click('#menu');
  const before = await page.locator('#sessions [data-id]').evaluateAll((buttons) => buttons.map(({ dataset }) => dataset.id));
  await page.click('#new');
  await page.waitForFunction((known) => {
    const open = document.querySelector('#sessions [aria-current="true"]');
    return open && !known.includes(open.dataset.id);
  }, before);
  const id = await page.getAttribute('#sessions [aria-current="true"]', 'data-id');
  return { page, seen, id };
}

async function prompt(page, text) {
  await page.fill('#prompt', text);
  await page.press('#prompt', 'Enter');
}

const shows = (page, text) => page.waitForFunction((wanted) => document.querySelector('#transcript').textContent.includes(wanted), text);

for (const width of [1280, 390]) {
  test(`a prompt is sent and its answer appears, at ${width} pixels`, async () => {
    const { page, seen } = await opened(width);
    await prompt(page, 'think first');
    await shows(page, 'Thought about it.');
    await shows(page, 'Let me see.');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, 'nothing is cut');
    assert.deepEqual(seen.errors, []);
    assert.ok(seen.requests.every((request) => request.startsWith(url)), 'nothing is loaded from elsewhere');
    await page.close();
  });
}

test('the token leaves the address and is not sent in a query', async () => {
  const { page, seen } = await opened();
  assert.equal(page.url(), `${url}/`);
  assert.ok(seen.requests.every((request) => !request.split('#')[0].includes(token)));
  await page.close();
});

test('without a token the page asks for it and shows nothing', async () => {
  const page = await browser.newPage();
  await page.goto(url);
  await page.waitForSelector('#login:not([hidden])');
  assert.ok(await page.isHidden('#app'));
  await page.fill('#token', token);
  await page.press('#token', 'Enter');
  await page.waitForSelector('#app:not([hidden])');
  await page.close();
});

for (const [decision, exists] of [['allow', true], ['deny', false]]) {
  test(`an approval ignores its first half second and is decided by the keyboard: ${decision}`, async () => {
    rmSync(made, { force: true });
    const { page, id } = await opened();
    await prompt(page, 'make a file');
    // Those of other sessions may be open.
    const button = approval(page, id).locator(`[data-decision=${decision}]`);
    await button.focus();
    await button.press('Enter');
    assert.equal(await button.count(), 1, 'the first half second is ignored');
    await page.waitForTimeout(600);
    await button.press('Enter');
    await shows(page, 'File handled.');
    await button.waitFor({ state: 'detached' });
    assert.equal(existsSync(made), exists);
    await page.close();
  });
}

test('markup of a model stays text', async () => {
  const { page, seen } = await opened();
  await prompt(page, 'show markup');
  await shows(page, '<img src=x onerror=');
  assert.equal(await page.locator('#transcript img, #transcript a').count(), 0);
  // The number of approvals of all sessions may precede it.
  assert.match(await page.title(), /^(\(\d+\) )?qwen$/);
  assert.ok(!seen.requests.some((request) => request.endsWith('/x')));
  await page.close();
});

test('a running turn is cancelled by the button', async () => {
  const { page } = await opened();
  await prompt(page, 'write slowly');
  await shows(page, 'slow slow');
  await page.click('#cancel');
  await shows(page, 'cancelled');
  await page.close();
});

test('mode and model are changed', async () => {
  const { page } = await opened();
  await page.selectOption('#mode', 'plan');
  const id = await page.getAttribute('#sessions [aria-current="true"]', 'data-id');
  for (;;) {
    const session = await (await fetch(`${url}/api/sessions/${id}`, { headers: { authorization: `Bearer ${token}` } })).json();
    if (session.mode === 'plan') break;
  }
  await page.close();
});

test('two pages show the same session', async () => {
  const { page } = await opened();
  await prompt(page, 'say hello');
  await shows(page, 'Hello from qwen.');
  const other = await browser.newPage();
  await other.goto(`${url}/#token=${token}`);
  await other.waitForSelector('#sessions button');
  await shows(other, 'Hello from qwen.');
  await prompt(other, 'and again');
  await shows(page, 'Hello again.');
  await page.close();
  await other.close();
});

const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
const api = async (method, path, body) => (await fetch(`${url}/api/${path}`, { method, headers, body: body && JSON.stringify(body) })).json();

/** The approval of the session that the page shows. */
const approval = (page, id) => page.locator(`.approval[data-session="${id}"]`);

/** Keeps a picture for the documentation, if a folder for it is given. */
async function picture(page, name) {
  if (!screenshots) return;
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

/** Fails if axe-core finds something serious. */
async function accessible(page) {
  // The policy of the page forbids scripts in it; the debugger may add one.
  const { violations } = await page.evaluate(`${axe}; axe.run()`);
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html]), []);
}

for (const [width, colorScheme] of [[1280, 'light'], [1280, 'dark'], [390, 'light'], [390, 'dark']]) {
  test(`everything of a turn is shown and accessible, at ${width} pixels, ${colorScheme}`, async () => {
    writeFileSync(join(workspace, 'parse.py'), "a = text.split(',')\n");
    const { page, seen, id } = await opened(width);
    await page.emulateMedia({ colorScheme });
    await prompt(page, 'do everything');
    const asked = approval(page, id);
    await asked.locator('.diff .added').waitFor();
    assert.equal(await asked.locator('.diff .removed').textContent(), "-a = text.split(',')\n");
    await accessible(page);
    await picture(page, `edit-${width}-${colorScheme}`);
    await page.waitForTimeout(600);
    await asked.locator('[data-decision=allow]').click();
    await asked.locator('.programs').waitFor();
    assert.match(await asked.locator('.command').textContent(), /touch tested\.txt/);
    assert.match(await asked.locator('.programs').textContent(), /echo, touch/);
    assert.match(await asked.locator('.reason').textContent(), /requires approval/);
    await picture(page, `command-${width}-${colorScheme}`);
    await page.waitForTimeout(600);
    await asked.locator('[data-decision=allow]').click();
    await shows(page, 'Everything is done.');
    await shows(page, 'done ·');
    const panel = async (id) => page.locator(`#${id}`).textContent();
    assert.match(await panel('plan'), /1 of 2 done/);
    assert.match(await panel('agents'), /general-purpose Check the docs/);
    assert.match(await panel('usage'), /Tool calls\d/);
    assert.equal(await page.locator('#transcript table td').count(), 2);
    assert.equal(await page.locator('#transcript .text strong').first().textContent(), 'fix it');
    assert.match(await page.locator('#transcript .call[data-status=success] .diff .added').textContent(), /';'/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, 'nothing is cut');
    const end = await page.locator('#transcript').evaluate((root) => root.scrollHeight - root.scrollTop - root.clientHeight);
    assert.ok(end < 60, 'the end is shown');
    await accessible(page);
    await picture(page, `turn-${width}-${colorScheme}`);
    if (width === 390) {
      await page.click('#details');
      assert.ok(await page.isVisible('#plan'));
      await accessible(page);
      await picture(page, `details-${width}-${colorScheme}`);
    }
    const [red] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
    assert.equal(red < 100, colorScheme === 'dark');
    assert.deepEqual(seen.errors, []);
    await page.close();
  });
}

for (const [key, exists] of [['y', true], ['n', false]]) {
  test(`an approval is decided by the key ${key}, which a prompt takes first`, async () => {
    rmSync(made, { force: true });
    const { page, id } = await opened();
    await prompt(page, 'make a file');
    const asked = approval(page, id);
    await asked.waitFor();
    await page.waitForTimeout(600);
    await page.locator('#prompt').press(key);
    assert.equal(await page.inputValue('#prompt'), key);
    assert.equal(await asked.count(), 1, 'a key that was typed for the prompt decides nothing');
    // Approvals of other tests may be in the queue; j and k go through it.
    await page.locator('#transcript').focus();
    for (let left = 20; left > 0; left -= 1) {
      await page.keyboard.press('j');
      if (await asked.evaluate((root) => root.contains(document.activeElement))) break;
    }
    await page.keyboard.press(key);
    await shows(page, 'File handled.');
    assert.equal(existsSync(made), exists);
    await page.close();
  });
}

test('approvals of the shown session come first', async () => {
  const other = (await api('POST', 'sessions', {})).id;
  await api('POST', `sessions/${other}/prompts`, { prompt: 'make a file' });
  const { page, id } = await opened();
  await approval(page, other).waitFor();
  await prompt(page, 'make a file');
  await approval(page, id).waitFor();
  await page.waitForFunction((own) => document.querySelector('.approval').dataset.session === own, id);
  await page.click(`#sessions [data-id="${other}"]`);
  await page.waitForFunction((own) => document.querySelector('.approval').dataset.session === own, other);
  // What the keys decide is in view.
  assert.equal(await page.locator('#approvals').evaluate((queue) => queue.scrollTop), 0);
  await page.close();
  for (const session of [id, other]) await api('POST', `sessions/${session}/cancel`, {});
});

test('a key for an approval that went away does not decide the next one', async () => {
  const other = (await api('POST', 'sessions', {})).id;
  await api('POST', `sessions/${other}/prompts`, { prompt: 'make a file' });
  const { page, id } = await opened();
  await prompt(page, 'make a file');
  await approval(page, id).waitFor();
  await approval(page, other).waitFor();
  await page.waitForTimeout(600);
  await page.evaluate(() => document.activeElement.blur());
  const pressed = page.evaluate((gone) => new Promise((resolve) => {
    const queue = document.querySelector('#approvals');
    new MutationObserver((_, observer) => {
      if (queue.querySelector(`[data-session="${gone}"]`)) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'y', bubbles: true }));
      resolve();
    }).observe(queue, { childList: true });
  }), id);
  await api('POST', `sessions/${id}/cancel`, {});
  await pressed;
  const { approvals } = await api('GET', 'approvals');
  assert.ok(approvals.some(({ session_id: session }) => session === other));
  await page.close();
  await api('POST', `sessions/${other}/cancel`, {});
});

test('an approval is decided by touch, with edited arguments', async () => {
  const other = join(workspace, 'other.txt');
  rmSync(other, { force: true });
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, hasTouch: true });
  const page = await context.newPage();
  const { id } = await api('POST', 'sessions', {});
  await api('POST', `sessions/${id}/prompts`, { prompt: 'make a file' });
  await page.goto(`${url}/#token=${token}`);
  await page.waitForSelector('#app:not([hidden])');
  await page.tap('#menu');
  await page.tap(`#sessions [data-id="${id}"]`);
  const asked = approval(page, id);
  await asked.locator('summary').tap();
  await asked.locator('.edited').fill('{"command":"touch other.txt"}');
  await page.waitForTimeout(600);
  await asked.locator('[data-decision=allow]').tap();
  await shows(page, 'File handled.');
  assert.ok(existsSync(other));
  await context.close();
});

test('the tree of thoughts grows and is drawn', async () => {
  const { id } = await api('POST', 'sessions', { agent: 'tot', model: 'oracle:game24' });
  const { page } = await opened();
  await page.click(`#sessions [data-id="${id}"]`);
  await prompt(page, '4 9 10 13');
  await shows(page, '= 24');
  const label = await page.getAttribute('#thoughts svg', 'aria-label');
  assert.match(label, /^Tree of thoughts: \d+ levels, \d+ thoughts$/);
  assert.ok(await page.locator('#thoughts .node.chosen').count() > 2);
  await accessible(page);
  await picture(page, 'tree-1280');
  await page.close();
});

test('the graph of thoughts is drawn', async () => {
  const { id } = await api('POST', 'sessions', { agent: 'got', model: 'oracle:sort' });
  const { page } = await opened();
  await page.click(`#sessions [data-id="${id}"]`);
  await prompt(page, 'Sort ascending: 5 3 1 4');
  await shows(page, '1 3 4 5');
  assert.match(await page.getAttribute('#thoughts svg', 'aria-label'), /^Graph of thoughts: \d+ thoughts$/);
  await page.locator('#thoughts .node.done').nth(1).waitFor({ state: 'attached' });
  await page.close();
});

test('a recorded session is replayed with the slider', async () => {
  const { page } = await opened();
  await prompt(page, 'list the files');
  await shows(page, 'That was all.');
  await shows(page, 'done ·');
  await page.click('#replay');
  await page.waitForSelector('#recording:not([hidden])');
  const slider = page.locator('#recording input');
  const last = Number(await slider.getAttribute('max'));
  assert.equal(Number(await slider.inputValue()), last);
  await shows(page, 'That was all.');
  await slider.fill('1');
  assert.equal(await page.locator('#transcript .entry').count(), 1, 'the prompt alone');
  await slider.press('ArrowRight');
  await page.locator('#recording button').first().click();
  await shows(page, 'That was all.');
  await page.click('text=Back to live');
  await shows(page, 'That was all.');
  assert.ok(await page.isHidden('#recording'));
  await page.close();
});

test('a prompt waits, is withdrawn, and another one joins the turn', async () => {
  const { page } = await opened();
  await prompt(page, 'write slowly');
  await shows(page, 'slow slow');
  await prompt(page, 'and again');
  const waiting = page.locator('#queue li');
  await waiting.waitFor();
  assert.match(await waiting.textContent(), /and again/);
  await waiting.locator('button').click();
  await waiting.waitFor({ state: 'detached' });
  await page.fill('#prompt', 'hurry up');
  await page.click('#steer');
  await page.waitForFunction(() => document.querySelector('#transcript').textContent.includes('hurry up'));
  await page.click('#cancel');
  await shows(page, 'cancelled');
  await page.close();
});

test('a session is renamed, forked and deleted', async () => {
  const { page, id } = await opened();
  await prompt(page, 'say hello');
  await shows(page, 'Hello from qwen.');
  await page.click('#rename');
  await page.fill('#answer', 'A new <b>name</b>');
  await page.press('#answer', 'Enter');
  await page.waitForFunction(() => document.querySelector('#title').textContent === 'A new <b>name</b>');
  await page.click('#fork');
  await page.waitForFunction((old) => document.querySelector('#sessions [aria-current="true"]')?.dataset.id !== old, id);
  const fork = await page.getAttribute('#sessions [aria-current="true"]', 'data-id');
  await page.click('#delete');
  await page.click('#confirm');
  await page.locator(`#sessions [data-id="${fork}"]`).waitFor({ state: 'detached' });
  assert.equal(await page.locator(`#sessions [data-id="${id}"]`).count(), 1);
  await page.close();
});

test('a hidden page notifies that something waits', async () => {
  const context = await browser.newContext({ permissions: ['notifications'] });
  await context.addInitScript(() => {
    window.told = [];
    window.Notification = class extends EventTarget {
      static requestPermission = async () => 'granted';
      constructor(title) { super(); window.told.push(title); }
    };
  });
  const page = await context.newPage();
  await page.goto(`${url}/#token=${token}`);
  await page.waitForSelector('#app:not([hidden])');
  await page.click('#notify');
  await page.waitForSelector('#notify[aria-pressed=true]');
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { get: () => true }));
  const { id } = await api('POST', 'sessions', {});
  await api('POST', `sessions/${id}/prompts`, { prompt: 'make a file' });
  await page.waitForFunction(() => window.told.includes('run_shell_command needs permission'));
  assert.match(await page.title(), /^\(\d+\) qwen$/);
  await api('POST', `sessions/${id}/cancel`, {});
  await page.waitForFunction(() => window.told.includes('The turn ended: cancelled'));
  await context.close();
});

test('a page that was cut off catches up', async () => {
  const { page, id } = await opened();
  await prompt(page, 'say hello');
  await shows(page, 'Hello from qwen.');
  await page.context().setOffline(true);
  await api('POST', `sessions/${id}/prompts`, { prompt: 'and again' });
  await page.context().setOffline(false);
  await shows(page, 'Hello again.');
  assert.equal(await page.locator('#transcript .user').count(), 2, 'nothing is shown twice');
  await page.close();
});

test('hostile text stays text', async () => {
  const { page, seen } = await opened();
  await prompt(page, 'be hostile');
  await shows(page, 'done ·');
  const text = await page.locator('#transcript').textContent();
  for (const shown of ['\\u202eevil\\u202c', '\\u001b[31mred', "<script>document.title='owned'</script>", 'javascript:alert(1)', '<img src=x onerror=alert(1)>', '<svg onload=alert(1)>', '<b>a</b>']) {
    assert.ok(text.includes(shown), shown);
  }
  assert.equal(await page.locator('#transcript').locator('a, img, script, svg, iframe').count(), 0);
  assert.match(await page.title(), /^(\(\d+\) )?qwen$/);
  assert.ok(seen.requests.every((request) => request.startsWith(url)));
  assert.deepEqual(seen.errors, []);
  await page.close();
});

test('a message of five megabytes is cut and the page stays usable', async () => {
  const { page } = await opened();
  await prompt(page, 'write a lot');
  await page.waitForFunction(() => document.querySelector('#transcript').textContent.includes('done ·'), null, { timeout: 60_000 });
  const length = await page.evaluate(() => document.querySelector('#transcript').textContent.length);
  assert.ok(length > 100_000 && length < 300_000, String(length));
  await prompt(page, 'say hello');
  await shows(page, 'Hello from qwen.');
  await page.close();
});

test('a session is exported as one file that shows the same and loads nothing', async () => {
  writeFileSync(join(workspace, 'parse.py'), "a = text.split(',')\n");
  const { id } = await api('POST', 'sessions', { mode: 'yolo' });
  await api('POST', `sessions/${id}/prompts`, { prompt: 'do everything' });
  await api('POST', `sessions/${id}/prompts`, { prompt: 'be hostile' });
  while ((await api('GET', `sessions/${id}`)).status !== 'idle');
  const file = join(workspace, '..', 'session.html');
  execFileSync(process.env.QWEN_BIN, ['sessions', 'export', id, '--html', file], { env: { ...process.env, QWEN_HOME: process.env.QWEN_SERVE_HOME } });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const requests = [];
  const errors = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(`file://${file}`);
  await shows(page, 'Everything is done.');
  await shows(page, "<script>document.title='owned'</script>");
  assert.equal(await page.title(), 'do everything');
  assert.equal(await page.locator('#transcript').locator('a, img, script, svg').count(), 0);
  assert.match(await page.locator('#plan').textContent(), /1 of 2 done/);
  assert.equal(await page.locator('#transcript .user').count(), 2);
  await accessible(page);
  await picture(page, 'export-1280');
  await page.locator('#recording input').fill('1');
  assert.equal(await page.locator('#transcript .user').count(), 1);
  assert.deepEqual(requests, [`file://${file}`]);
  assert.deepEqual(errors, []);
  await page.close();
});

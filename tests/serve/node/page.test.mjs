// The page in the system's Chromium, at the width of a desk and of a phone.
import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const url = process.env.QWEN_SERVE_URL;
const token = process.env.QWEN_SERVE_TOKEN;
const made = join(process.env.QWEN_SERVE_WORKSPACE, 'made.txt');
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
  await page.click('#new');
  await page.waitForSelector('#sessions [aria-current="true"]');
  return { page, seen };
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
    const { page } = await opened();
    await prompt(page, 'make a file');
    // Others may be open; this session's is the one without a note.
    const button = page.locator('.approval:not(:has-text("in another session"))').locator(`[data-decision=${decision}]`);
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
  assert.equal(await page.title(), 'qwen');
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

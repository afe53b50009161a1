import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { ClosedError } from '../errors.js';
import { LineSplitter } from './lines.js';
import type { LaunchPlan, Transport, TransportReceiver } from './transport.js';

const STDERR_TAIL_CHARACTERS = 16 * 1024;
const EXIT_GRACE_MS = 2000;

/** Children of this process that still run. They are ended when the process exits. */
const running = new Set<ChildProcessWithoutNullStreams>();
let exitHookInstalled = false;

function endWithProcess(child: ChildProcessWithoutNullStreams): void {
  running.add(child);
  if (exitHookInstalled) return;
  exitHookInstalled = true;
  process.once('exit', () => {
    for (const each of running) each.kill('SIGTERM');
  });
}

export function directoryProblem(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return `the working directory ${path} does not exist`;
  return found.isDirectory() ? undefined : `the working directory ${path} is not a directory`;
}

/** Runs a worker as a child process and speaks JSON lines over its standard input and output. */
export class ProcessTransport implements Transport {
  readonly #plan: LaunchPlan;
  #child: ChildProcessWithoutNullStreams | undefined;
  #stderrTail = '';
  #hasClosedOutput = false;

  constructor(plan: LaunchPlan) {
    this.#plan = plan;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get stderrTail(): string {
    return this.#stderrTail;
  }

  get hasClosedOutput(): boolean {
    return this.#hasClosedOutput;
  }

  open(receiver: TransportReceiver): void {
    const { command, args, cwd, env } = this.#plan;
    // A session of its own keeps the terminal's Ctrl-C for the host; the worker ends when its pipes close.
    const problem = cwd === undefined ? undefined : directoryProblem(cwd);
    if (problem !== undefined) {
      receiver.onExit({ exitCode: null, signal: null, stderrTail: '' }, new Error(problem));
      return;
    }
    const child = spawn(command, [...args], { cwd, env, stdio: 'pipe', detached: true, windowsHide: true });
    this.#child = child;
    endWithProcess(child);
    const lines = new LineSplitter(
      (lines) => { receiver.onLines(lines); },
      (bytes) => { receiver.onTooLongLine(bytes); },
    );
    child.stdout.on('data', (chunk: Buffer) => { lines.push(chunk); });
    child.stdout.once('end', () => {
      lines.end();
      this.#hasClosedOutput = true;
      // A worker that lives on without its output is of no use any more.
      const timer = setTimeout(() => child.kill('SIGKILL'), EXIT_GRACE_MS);
      timer.unref();
      child.once('exit', () => { clearTimeout(timer); });
    });
    const decoder = new StringDecoder('utf8');
    child.stderr.on('data', (chunk: Buffer) => {
      const text = decoder.write(chunk);
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARACTERS);
      receiver.onStderr(text);
    });
    // A worker that is gone is reported by its exit; writing to it is no error of its own.
    child.stdin.on('error', () => undefined);
    let failure: Error | undefined;
    child.on('error', (error) => {
      failure = error;
      if (child.pid === undefined) {
        running.delete(child);
        receiver.onExit({ exitCode: null, signal: null, stderrTail: '' }, error);
      }
    });
    child.once('exit', () => running.delete(child));
    child.once('close', (exitCode, signal) => {
      receiver.onExit({ exitCode, signal, stderrTail: this.#stderrTail }, failure);
    });
  }

  write(line: string): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable) return Promise.reject(new ClosedError('The worker\'s standard input'));
    if (stdin.write(`${line}\n`)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        stdin.off('drain', done).off('close', done);
        resolve();
      };
      stdin.on('drain', done).on('close', done);
    });
  }

  pause(): void {
    this.#child?.stdout.pause();
  }

  resume(): void {
    this.#child?.stdout.resume();
  }

  end(): void {
    this.#child?.stdin.end();
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (signal === 'SIGTERM' || !this.#killGroup()) this.#child?.kill(signal);
    // Nobody reads the rest of a killed worker, and a paused pipe would keep `close` from coming.
    if (signal === 'SIGKILL') this.#child?.stdout.resume();
  }

  /** Ends the process with its children: a program that is not a hub may have started some. */
  #killGroup(): boolean {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return false;
    try {
      return process.kill(-child.pid, 'SIGKILL');
    } catch {
      // There are no process groups here.
      return false;
    }
  }

  setRef(keepAlive: boolean): void {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const method = keepAlive ? 'ref' : 'unref';
    child[method]();
    // The pipes of node are sockets; those of other runtimes may not have these methods.
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as Partial<Socket>)[method]?.();
  }
}

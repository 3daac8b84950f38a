import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import type { ClientIo, Screen } from '../../../cli/batches/client-io';
import { addBatchCommands } from '../../../cli/batches/commands';

export interface ClientRun {
  /** Resolves with the exit status. */
  readonly done: Promise<number>;
  readonly signals: EventEmitter;
  out(): string;
  err(): string;
}

export interface RunSettings {
  readonly env?: Record<string, string>;
  /** Answers the question after Ctrl-C. Without it there is no terminal to ask on. */
  readonly answer?: (question: string) => Promise<string | null>;
  readonly isTTY?: boolean;
}

/** Runs `nightshift ARGS…` with streams, signals and environment of the test's own. */
export function runClient(args: readonly string[], settings: RunSettings = {}): ClientRun {
  const { env = {}, answer, isTTY = false } = settings;
  const out = textSink(isTTY);
  const err = textSink(isTTY);
  const signals = new EventEmitter();
  let code = -1;
  const io: ClientIo = {
    stdout: out.sink,
    stderr: err.sink,
    env,
    signals,
    ...(answer === undefined ? {} : { ask: (question: string) => answer(question) }),
    pollMs: 5,
    exitWith: (status) => void (code = status),
  };
  const program = new Command('nightshift').exitOverride().configureOutput({
    writeErr: (text) => void err.sink.write(text),
    writeOut: (text) => void out.sink.write(text),
  });
  addBatchCommands(program, () => io);
  for (const command of program.commands) command.exitOverride().copyInheritedSettings(program);
  const done = program.parseAsync(['node', 'nightshift', ...args]).then(
    () => code,
    (error: { exitCode?: number }) => error.exitCode ?? -2,
  );
  return { done, signals, out: out.text, err: err.text };
}

function textSink(isTTY: boolean): { sink: Screen & Writable; text: () => string } {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, callback) {
      chunks.push(chunk);
      callback();
    },
  });
  return {
    sink: Object.assign(sink, { isTTY, columns: 100 }),
    text: () => Buffer.concat(chunks).toString('utf8'),
  };
}

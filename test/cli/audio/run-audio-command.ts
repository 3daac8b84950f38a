import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import { addAudioCommands } from '../../../cli/audio/commands';
import type { ClientIo } from '../../../cli/batches/client-io';

/** What a command has written, and its exit status. */
export interface RanCommand {
  readonly bytes: Buffer;
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Runs `nightshift audio ARGS…` with streams of the test's own. */
export async function runAudioCommand(
  args: readonly string[],
  { isTTY = false, env = {} }: { isTTY?: boolean; env?: Record<string, string> } = {},
): Promise<RanCommand> {
  const seen = { stderr: '', code: -1 };
  const chunks: Buffer[] = [];
  const stdout = Object.assign(
    new Writable({
      write: (chunk: Buffer, _, done) => {
        chunks.push(chunk);
        done();
      },
    }),
    { isTTY },
  );
  const io: ClientIo = {
    ...{ stdout, env, pollMs: 1, signals: new EventEmitter() },
    stderr: { write: (text) => (seen.stderr += text) },
    exitWith: (code) => (seen.code = code),
  };
  const program = new Command().exitOverride();
  addAudioCommands(program, () => io);
  await program.parseAsync(['node', 'nightshift', 'audio', ...args]);
  const bytes = Buffer.concat(chunks);
  return { ...seen, bytes, stdout: bytes.toString('utf8') };
}

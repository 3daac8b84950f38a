import type { FileHandle } from 'node:fs/promises';
import { EarlySync } from '../../../storage/objects/early-sync';

const MIB = 1024 * 1024;

/** A file whose syncs end when the test says so. */
function slowFile() {
  const ends: ((error?: Error) => void)[] = [];
  const datasync = jest.fn(
    () =>
      new Promise<void>((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
      }),
  );
  const end = async (error?: Error): Promise<void> => {
    ends.shift()?.(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { datasync, end, sync: new EarlySync({ datasync } as unknown as FileHandle) };
}

describe('the sync of a file that is being written', () => {
  it('begins at 4 MiB, then at twice as much each time, up to 32 MiB', async () => {
    const { sync, datasync, end } = slowFile();
    const begins: number[] = [];
    for (let mib = 1; mib <= 130; mib++) {
      const before = datasync.mock.calls.length;
      sync.wrote(MIB);
      if (datasync.mock.calls.length > before) begins.push(mib);
      await end();
    }
    expect(begins).toEqual([4, 12, 28, 60, 92, 124]);
  });

  it('runs once at a time, and the last one covers everything', async () => {
    const { sync, datasync, end } = slowFile();
    sync.wrote(20 * MIB);
    sync.wrote(20 * MIB);
    expect(datasync).toHaveBeenCalledTimes(1);
    const finished = sync.finish();
    await end();
    expect(datasync).toHaveBeenCalledTimes(2);
    await end();
    await finished;
  });

  it('fails the file if any of them failed, because the system says so only once', async () => {
    const { sync, datasync, end } = slowFile();
    sync.wrote(4 * MIB);
    await end(new Error('the disk is broken'));
    await expect(sync.finish()).rejects.toThrow('the disk is broken');
    expect(datasync).toHaveBeenCalledTimes(1);
  });
});

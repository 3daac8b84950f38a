import { LineFiles } from '../../../activities/delegate/line-files';
import { inputFilesKey } from '../../../core/names/object-names';
import { encodeInputFiles } from '../../../core/plan/input-files';
import { createMemoryStore } from '../../support/memory-store';

/** The files that requests name, as adapters read them. */

const PART = { batchId: `batch_${'0a'.repeat(16)}`, planNonce: 'n1' };
const LIST = inputFilesKey(PART.batchId, PART.planNonce);

function storeWithFiles() {
  const store = createMemoryStore();
  const files = new Map([
    ['file-1', { key: 'k/1', bytes: 3, filename: 'one.wav' }],
    ['file-2', { key: 'k/2', bytes: 3, filename: 'two.wav' }],
  ]);
  store.objects.set(LIST, encodeInputFiles(files));
  store.objects.set('k/1', Buffer.from('abc'));
  return store;
}

it('opens a file as often as it is asked for, with name and size', async () => {
  const file = await new LineFiles(storeWithFiles()).open(PART, 'file-1');
  expect(file).toMatchObject({ bytes: 3, filename: 'one.wav' });
  for (let times = 0; times < 2; times++) {
    const pieces: Uint8Array[] = [];
    for await (const piece of file?.open() ?? []) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toBe('abc');
  }
});

it('opens neither a file that the batch does not name nor one without bytes', async () => {
  const files = new LineFiles(storeWithFiles());
  expect(await files.open(PART, 'file-3')).toBeNull();
  expect(await files.open(PART, 'file-2')).toBeNull();
  expect(await files.open({ ...PART, planNonce: 'other' }, 'file-1')).toBeNull();
});

it('reads the list of a batch once', async () => {
  const store = storeWithFiles();
  const read = jest.spyOn(store, 'read');
  const files = new LineFiles(store);
  await Promise.all(['file-1', 'file-2', 'file-1'].map((id) => files.open(PART, id)));
  expect(read).toHaveBeenCalledTimes(1);
});

it('reads the list again after a failure', async () => {
  const store = storeWithFiles();
  const files = new LineFiles(store);
  jest.spyOn(store, 'read').mockRejectedValueOnce(new Error('away'));
  await expect(files.open(PART, 'file-1')).rejects.toThrow('away');
  expect(await files.open(PART, 'file-1')).not.toBeNull();
});

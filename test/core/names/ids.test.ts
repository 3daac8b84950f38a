import { randomBytes } from 'node:crypto';
import {
  batchIdFromBytes,
  batchOfResultFile,
  fileIdFromBytes,
  resultFileId,
} from '../../../core/names/ids';

describe('the id of a result file', () => {
  it.each([
    ['zeros', Buffer.alloc(16)],
    ['ones', Buffer.alloc(16, 0xff)],
    ['anything', randomBytes(16)],
  ])('contains the id of its batch: %s', (_what, bytes) => {
    const batchId = batchIdFromBytes(bytes);
    expect(batchOfResultFile(resultFileId(batchId, 'output'))).toBe(batchId);
    expect(batchOfResultFile(resultFileId(batchId, 'error'))).toBe(batchId);
    expect(batchOfResultFile(fileIdFromBytes(bytes))).toBeNull();
  });

  it.each(['', 'file-x', `file-${'z'.repeat(22)}o`, `file-${'0'.repeat(22)}x`])(
    'is never %j',
    (id) => expect(batchOfResultFile(id)).toBeNull(),
  );
});

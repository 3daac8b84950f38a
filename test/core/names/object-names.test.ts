import fc from 'fast-check';
import * as keys from '../../../core/names/object-names';

const batch = `batch_${'0a'.repeat(16)}`;
const r = '0123456789abcdef';

describe('object keys', () => {
  it('have the documented format', () => {
    expect(keys.modelMapKey(batch)).toBe(`batches/${batch}/model_map.json`);
    expect(keys.inputErrorsKey(batch)).toBe(`batches/${batch}/errors.json`);
    expect(keys.planKey(batch, r, 'm')).toBe(`batches/${batch}/plans/${r}/m.plan`);
    expect(keys.journalPrefix(batch, 'm')).toBe(`batches/${batch}/journal/m/`);
    expect(keys.segmentKey(batch, 'm', { from: 7, to: 13 }, r)).toBe(
      `batches/${batch}/journal/m/0000000007-0000000012.${r}.seg`,
    );
    expect(keys.sealKey(batch, 'm', { from: 0, to: 10_000 }, r)).toBe(
      `batches/${batch}/seals/m/0000000000-0000010000.${r}.seal`,
    );
    expect(keys.restKey(batch, 'm', r)).toBe(`batches/${batch}/seals/m/rest.${r}.seal`);
    expect(keys.manifestKey(batch)).toBe(`batches/${batch}/manifest.json`);
    expect(keys.fileKey('t1', 'file-x')).toBe('files/t1/file-x');
  });

  it('start with their prefixes', () => {
    expect(
      keys.sealKey(batch, 'm', { from: 0, to: 1 }, r).startsWith(keys.sealsPrefix(batch)),
    ).toBe(true);
    expect(
      keys.segmentKey(batch, 'm', { from: 0, to: 2 }, r).startsWith(keys.journalPrefix(batch, 'm')),
    ).toBe(true);
    expect(keys.planKey(batch, r, 'm').startsWith(keys.batchPrefix(batch))).toBe(true);
  });

  it('can be parsed back into the parts of a segment name', () => {
    const key = keys.segmentKey(batch, 'org_model.A-1', { from: 7, to: 13 }, r);
    const expected = { batchId: batch, safeModel: 'org_model.A-1', range: { from: 7, to: 13 }, r };
    expect(keys.parseSegmentKey(key)).toEqual(expected);
  });

  it('number the segments of a writer in key order, and find the writer again', () => {
    const segment = keys.segmentKey(batch, 'm', { from: 7, to: 13 }, r);
    const numbered = [1, 2, 10, 999_999].map((n) => keys.numberedSegmentKey(segment, n));
    expect(numbered[0]).toBe(`batches/${batch}/journal/m/0000000007-0000000012.${r}.000001.seg`);
    expect([...numbered].sort()).toEqual(numbered);
    for (const key of [segment, ...numbered]) {
      expect(keys.unnumberedSegmentKey(key)).toBe(segment);
      expect(keys.parseSegmentKey(key)).toEqual(keys.parseSegmentKey(segment));
    }
  });

  it('are listed between two keys with every object whose range overlaps', () => {
    const start = fc.nat(200_000);
    const length = fc.integer({ min: 1, max: 10_000 });
    fc.assert(
      fc.property(start, length, start, length, (from, size, otherFrom, otherSize) => {
        const range = { from, to: from + size };
        const { after, before } = keys.overlapKeys('f/', range, 10_000);
        const overlaps = otherFrom < range.to && otherFrom + otherSize > from;
        const other = { from: otherFrom, to: otherFrom + otherSize };
        const name = `f/${keys.segmentKey(batch, 'm', other, r).split('/').at(-1)}`;
        const isListed = after < name && name < before;
        if (overlaps) expect(isListed).toBe(true);
        if (otherFrom >= range.to || otherFrom + 10_000 <= from) expect(isListed).toBe(false);
      }),
    );
  });

  it('can be parsed back into the parts of a seal name, without a range for the rest', () => {
    expect(keys.parseSealKey(keys.sealKey(batch, 'm', { from: 3, to: 9 }, r))).toEqual({
      batchId: batch,
      safeModel: 'm',
      range: { from: 3, to: 9 },
      r,
    });
    expect(keys.parseSealKey(keys.restKey(batch, 'rest', r))).toEqual({
      batchId: batch,
      safeModel: 'rest',
      range: null,
      r,
    });
  });

  it('can be parsed back into the ids of files and upload parts', () => {
    expect(keys.parseFileKey(keys.fileKey('t1', 'file-x'))).toEqual({ fileId: 'file-x' });
    const part = keys.uploadPartKey('upload_1', 'part_2');
    expect(keys.parseUploadPartKey(part)).toEqual({ uploadId: 'upload_1' });
    expect(keys.parseFileKey(part)).toBeNull();
    expect(keys.parseUploadPartKey(keys.fileKey('t1', 'file-x'))).toBeNull();
    const index = keys.fileIndexKey(keys.fileKey('t1', 'file-x'));
    expect(index).toBe('indexes/t1/file-x');
    expect(keys.parseFileIndexKey(index)).toEqual({ fileId: 'file-x' });
    expect(keys.parseFileKey(index)).toBeNull();
    expect(keys.parseFileIndexKey(keys.fileKey('t1', 'file-x'))).toBeNull();
  });

  it.each([
    '',
    'x',
    keys.modelMapKey(batch),
    `${keys.sealKey(batch, 'm', { from: 0, to: 1 }, r)}.tmp`,
  ])('are not parsed from %j', (key) => {
    expect(keys.parseSegmentKey(key)).toBeNull();
    expect(keys.parseSealKey(key)).toBeNull();
  });
});

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

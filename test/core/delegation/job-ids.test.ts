import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { jobId, positionOfWireId, wireId } from '../../../core/delegation/job-ids';

const sha256Hex = (text: string) => createHash('sha256').update(text).digest('hex');
const identity = { batchId: 'batch_1', safeModel: 'm', from: 0, generation: 0, ordinal: 0 };
const JOB = jobId(identity, sha256Hex);

describe('the id of a job', () => {
  it('is the SHA-256 of batch, model, position, generation and ordinal', () => {
    expect(JOB).toBe('job_66f30ef606bc590c1816935909216ba7');
  });

  it.each([
    { batchId: 'batch_2' },
    { safeModel: 'n' },
    { from: 1 },
    { generation: 1 },
    { ordinal: 1 },
  ])('differs if one of its parts differs: %j', (other) => {
    expect(jobId({ ...identity, ...other }, sha256Hex)).not.toBe(JOB);
  });

  it('keeps apart numbers that read alike when joined', () => {
    const ids = [
      { from: 1, generation: 11, ordinal: 1 },
      { from: 11, generation: 1, ordinal: 1 },
      { from: 1, generation: 1, ordinal: 11 },
    ].map((numbers) => jobId({ ...identity, ...numbers }, sha256Hex));
    expect(new Set(ids).size).toBe(3);
  });
});

describe('the wire id of a line', () => {
  it('has 19 lower-case letters and digits, and leads back to its position', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36 ** 6 - 1 }), (position) => {
        const id = wireId(JOB, position);
        expect(id).toMatch(/^[a-z0-9]{19}$/);
        expect(positionOfWireId(JOB, id)).toBe(position);
      }),
    );
  });

  it('of another job is foreign', () => {
    const other = jobId({ ...identity, ordinal: 1 }, sha256Hex);
    expect(positionOfWireId(JOB, wireId(other, 7))).toBeNull();
  });

  it.each([
    '',
    'request-1',
    wireId(JOB, 7).toUpperCase(),
    `${wireId(JOB, 7)}0`,
    ` ${wireId(JOB, 7)}`,
  ])('is not read from %j', (text) => {
    expect(positionOfWireId(JOB, text)).toBeNull();
  });

  it.each([-1, 0.5, 36 ** 6, NaN])('is refused for the position %d', (position) => {
    expect(() => wireId(JOB, position)).toThrow(RangeError);
  });
});

import type { BatchRow } from '../../storage/postgres/batches/types';
import { SharedRows } from '../../workers/shared-rows';

const ROW = { id: 'batch_1' } as BatchRow;

function rowsOf(answers: readonly (BatchRow | null | Error)[]) {
  let asked = 0;
  const rows = new SharedRows(() => {
    const answer = asked < answers.length ? answers[asked] : ROW;
    asked++;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? null);
  });
  return { rows, asked: () => asked };
}

describe('rows of batches that are ingested', () => {
  it('are looked up once while the ingestion runs, and again by the next one', async () => {
    const { rows, asked } = rowsOf([]);
    const ingest = () =>
      rows.during('batch_1', async () => {
        expect(await rows.find('batch_1')).toBe(ROW);
        expect(await rows.find('batch_1')).toBe(ROW);
      });
    await ingest();
    expect(asked()).toBe(1);
    await ingest();
    expect(asked()).toBe(2);
  });

  it('are looked up again after a failure, and if there was none', async () => {
    const { rows, asked } = rowsOf([new Error('away'), null]);
    await rows.during('batch_1', async () => {
      await expect(rows.find('batch_1')).rejects.toThrow('away');
      expect(await rows.find('batch_1')).toBeNull();
      expect(await rows.find('batch_1')).toBe(ROW);
      expect(await rows.find('batch_1')).toBe(ROW);
    });
    expect(asked()).toBe(3);
  });

  it('are not kept outside of an ingestion', async () => {
    const { rows, asked } = rowsOf([]);
    await rows.find('batch_1');
    await rows.find('batch_1');
    expect(asked()).toBe(2);
  });
});

import { inputErrorsKey, manifestKey, modelMapKey } from '../../../core/names/object-names';
import { BATCH, BatchPlace, models } from './fixtures';

let place: BatchPlace;

afterEach(() => place.remove());

describe('a batch without a plan', () => {
  it('whose file was refused is recorded with its errors', async () => {
    place = await BatchPlace.create(models('m'));
    await place.store.delete(modelMapKey(BATCH));
    const errors = [{ code: 'empty_file', message: 'No lines.', param: null, line: null }];
    await place.store.putIfAbsent(
      inputErrorsKey(BATCH),
      Buffer.from(JSON.stringify({ data: errors })),
    );
    const result = await place.finalize('failed', null);
    expect(result).toEqual({
      kind: 'done',
      status: 'failed',
      counts: { total: 0, completed: 0, failed: 0 },
      outputFileId: null,
      errorFileId: null,
    });
    expect(place.records[0]).toMatchObject({ errors, outputFile: null, errorFile: null });
    expect(await place.store.head(manifestKey(BATCH))).toBeNull();
  });

  it('and without errors is recorded only under a cause', async () => {
    place = await BatchPlace.create(models('m'));
    await place.store.delete(modelMapKey(BATCH));
    await expect(place.finalize(null, null)).rejects.toMatchObject({ type: 'plan_unreadable' });
    expect(await place.finalize('expired', null)).toMatchObject({ status: 'expired' });
    expect(place.records[0]?.errors).toBeNull();
  });

  it('according to its workflow is still delivered if the store has a plan', async () => {
    place = await BatchPlace.create(models('m', 'm'));
    await place.answerAll('m', 0, 1);
    expect(await place.finalize('cancelled', null)).toMatchObject({
      status: 'cancelled',
      counts: { total: 2, completed: 1, failed: 0 },
    });
    expect(await place.resultLines('output')).toHaveLength(1);
  });

  it('keeps its end when a lost ingestion writes a plan afterwards', async () => {
    place = await BatchPlace.create(models('m'));
    place.rowStatus = 'cancelled';
    expect(await place.finalize('cancelled', null)).toMatchObject({
      ...{ status: 'cancelled', outputFileId: null, errorFileId: null },
      counts: { total: 0 },
    });
    expect(place.records).toEqual([]);
    expect(await place.resultLines('error')).toBeNull();
  });

  it('is recorded even if the model map is damaged', async () => {
    place = await BatchPlace.create(models('m'));
    await place.store.delete(modelMapKey(BATCH));
    await place.store.putIfAbsent(modelMapKey(BATCH), Buffer.from('{'));
    expect(await place.finalize('failed', null)).toMatchObject({ status: 'failed' });
  });
});

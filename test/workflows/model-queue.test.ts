import fc from 'fast-check';
import { EXEC_QUEUE, modelQueue } from '../../workflows/contract';

describe('the queue of a model', () => {
  it('is named after the model, even if that is called like a shared gateway', () => {
    expect(modelQueue('org/plain:1')).toBe('nightshift-exec.org/plain:1');
    expect(modelQueue('default')).not.toBe(EXEC_QUEUE);
  });

  it('has a name that Temporal accepts, and a different one for each model', () => {
    const name = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(name, name, (a, b) => {
        const queue = modelQueue(a);
        expect(Buffer.byteLength(queue)).toBeLessThanOrEqual(1_000);
        expect(queue).not.toMatch(/[\u0000-\u001f]/);
        expect(queue).not.toMatch(/\p{Cs}/u);
        expect(modelQueue(b) === queue).toBe(a === b);
      }),
    );
    expect(modelQueue('\ud800')).not.toBe(modelQueue('\udfff'));
    expect(modelQueue('😀'.repeat(256))).not.toBe(modelQueue(`${'😀'.repeat(255)}x`));
  });
});

import { ApplicationFailure } from '@temporalio/activity';
import { asFailure } from '../../activities/failure';
import { GatewayError } from '../../core/errors';

describe('what an activity throws', () => {
  it('has the code of a gateway error as its type, and is retried only where the code is', () => {
    const lasting = asFailure(new GatewayError('input_missing', 'gone'));
    expect(lasting).toBeInstanceOf(ApplicationFailure);
    expect(lasting).toMatchObject({ type: 'input_missing', nonRetryable: true, message: 'gone' });
    const passing = asFailure(new GatewayError('object_store_failed', 'reset'));
    expect(passing).toMatchObject({ type: 'object_store_failed', nonRetryable: false });
  });

  it('is anything else unchanged', () => {
    const error = new Error('x');
    expect(asFailure(error)).toBe(error);
  });
});

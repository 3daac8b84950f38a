import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { start, stopSimulators } from '../simulators';

afterEach(stopSimulators);

it('serves the official client of Mistral from the upload of a batch to its removal', async () => {
  const url = await start();
  const script = path.join(__dirname, 'mistral-client.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [script, url]);
  expect(JSON.parse(stdout)).toMatchObject({
    held: { status: 'RUNNING', metadata: { nightshift_job: 'job_1' } },
    cancelled: { status: 'CANCELLATION_REQUESTED' },
    ended: { status: 'SUCCESS', totalRequests: 2, succeededRequests: 1, failedRequests: 1 },
    page: { total: 2, isHeld: true },
    output: { custom_id: 'a', response: { status_code: 200 } },
    errors: { custom_id: 'b', response: { status_code: 400 } },
    deleted: true,
    // Only lines that ran have a result.
    expired: { status: 'TIMEOUT_EXCEEDED', succeededRequests: 1, errorFile: null },
    refusal: 400,
  });
});

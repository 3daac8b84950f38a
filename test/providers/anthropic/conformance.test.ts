import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance(
  'anthropic',
  { ...FILE_CALLS, remove: 'batches.delete' },
  () => openHost({ type: 'anthropic', apiVersion: '2023-06-01' }, 'anthropic'),
  {
    ...ALL_TRAITS,
    codes: { auth: 'authentication_error', refused: 'invalid_request_error' },
    uploads: false,
    usage: false,
    blamesLines: false,
    busyStatus: 529,
    // Of a job, only the ids of its lines arrive there.
    marker: 'n1',
  },
);

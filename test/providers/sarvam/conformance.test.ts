import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeRecordingConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeRecordingConformance(
  'sarvam',
  {
    // A look at the job tells whether it was started.
    names: { ...FILE_CALLS, list: 'batches.retrieve' },
    traits: {
      ...ALL_TRAITS,
      codes: { auth: 'invalid_api_key_error', refused: 'invalid_request_error' },
      lists: false,
      marker: 'n1.verbose_json.wav',
      deletes: false,
      cancels: false,
    },
    wireIds: ['n1', 'n2', 'n3'],
  },
  () => openHost({ type: 'sarvam' }, 'sarvam'),
);

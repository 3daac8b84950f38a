import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance('gemini', FILE_CALLS, () => openHost({ type: 'gemini' }, 'gemini'), {
  ...ALL_TRAITS,
  ...{ usage: false, blamesLines: false, namesUnrun: false, keepsExpired: false },
  codes: { auth: 'API_KEY_INVALID', refused: 'invalid_value' },
});

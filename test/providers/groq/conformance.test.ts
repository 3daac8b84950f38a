import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance('groq', FILE_CALLS, () => openHost({ type: 'groq' }, 'groq/openai/v1'), {
  ...ALL_TRAITS,
  usage: false,
});

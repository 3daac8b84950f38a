import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance('mistral', FILE_CALLS, () => openHost({ type: 'mistral' }, 'mistral/v1'), {
  ...ALL_TRAITS,
  usage: false,
  blamesLines: false,
  namesUnrun: false,
});

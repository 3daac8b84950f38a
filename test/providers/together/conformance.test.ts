import { openHost } from '../conformance/open-host';
import { ALL_TRAITS, FILE_CALLS } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts } from '../simulated-host';

afterEach(closeHosts);

describeConformance('together', FILE_CALLS, () => openHost({ type: 'together' }, 'together/v1'), {
  ...ALL_TRAITS,
  counts: false,
  usage: false,
  blamesLines: false,
});

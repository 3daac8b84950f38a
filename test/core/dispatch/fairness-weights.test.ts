import { EQUAL_WEIGHTS, flowWeight, tenantWeight } from '../../../core/dispatch/fairness-weights';

const FAIRNESS = { default: 2, tenants: { acme: 3 }, models: { small: 0.5 } };

it('gives unlisted tenants the default, and unlisted models 1', () => {
  expect(['acme', 'other'].map((tenant) => tenantWeight(FAIRNESS, tenant))).toEqual([3, 2]);
  const ofModels = ['small', 'large'].map((model) => flowWeight(FAIRNESS, 'other', model));
  expect(ofModels).toEqual([1, 2]);
});

it('multiplies the weights of tenant and model', () => {
  expect(flowWeight(FAIRNESS, 'acme', 'small')).toBe(1.5);
  expect(flowWeight(EQUAL_WEIGHTS, 'acme', 'small')).toBe(1);
});

it('finds nothing by the names that every object has', () => {
  expect(flowWeight(FAIRNESS, 'constructor', '__proto__')).toBe(2);
});

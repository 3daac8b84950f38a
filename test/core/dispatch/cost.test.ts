import { ExpectedOutput, TokenCosts } from '../../../core/dispatch/cost';

describe('the cost of a request for text', () => {
  const costs = new TokenCosts({ unitCost: false });

  it('is its input tokens and twice its output tokens', () => {
    const output = new ExpectedOutput();
    expect(costs.expected({ promptBytes: 400, maxTokens: null }, output)).toBe(100 + 2 * 64);
    expect(costs.expected({ promptBytes: 400, maxTokens: 10 }, output)).toBe(100 + 2 * 10);
    expect(costs.real({ inputTokens: 90, outputTokens: 30 }, output)).toBe(150);
  });

  it('is at least 1', () => {
    const size = { promptBytes: 0, maxTokens: 0 };
    expect(costs.expected(size, new ExpectedOutput())).toBe(1);
  });

  it('expects what the answers of the flow had, the first ones with more weight', () => {
    const output = new ExpectedOutput();
    output.onAnswer(1_064);
    expect(output.tokens).toBe(564);
    for (let i = 0; i < 100; i++) output.onAnswer(200);
    expect(output.tokens).toBeCloseTo(200, 0);
    output.onAnswer(300);
    expect(output.tokens).toBeCloseTo(210, 0);
  });

  it('is 1 with unit costs', () => {
    const unit = new TokenCosts({ unitCost: true });
    const output = new ExpectedOutput();
    expect(unit.expected({ promptBytes: 400, maxTokens: null }, output)).toBe(1);
    expect(unit.real({ inputTokens: 90, outputTokens: 30 }, output)).toBe(1);
  });
});

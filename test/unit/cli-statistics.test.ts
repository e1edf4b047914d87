import { expect, test } from 'vitest';
import { histogram } from '#lib/cli/histogram.js';
import { RoundTrips } from '#lib/cli/round-trips.js';
import { table } from '#lib/cli/table.js';

function timesOf(...times: number[]): RoundTrips {
  const trips = new RoundTrips();
  for (const time of times) trips.add(time);
  return trips;
}

test('round trips know their extremes, average and deviation', () => {
  const { minimum, maximum, average, deviation, count } = timesOf(4, 2, 6);
  expect([minimum, maximum, average, count]).toEqual([2, 6, 4, 3]);
  expect(deviation).toBeCloseTo(Math.sqrt(8 / 3));
});

test('a percentile is a time that was measured', () => {
  const trips = timesOf(...Array.from({ length: 100 }, (_, index) => index + 1));
  expect([50, 90, 99, 99.9, 100].map((percent) => trips.percentile(percent))).toEqual([50, 90, 99, 100, 100]);
  expect(timesOf(7).percentile(50)).toBe(7);
});

test('no round trips are a count of 0, and no NaN in JSON', () => {
  expect(JSON.stringify(timesOf())).toBe('{"count":0}');
});

test('a histogram draws every time once, between borders that hold it', () => {
  const times = [0.2, 0.3, 1.5, 1.6, 1.7, 9, 10, 4999.9];
  const lines = histogram(times).split('\n');
  const bars = lines.map((line) => /^ *(\S+) to (\S+) ms +(\d+)/.exec(line)!.slice(1).map(Number));
  let drawn = 0;
  for (const [low, high, count] of bars) {
    expect(times.filter((time) => time >= low! && time < high!).length).toBe(count);
    drawn += count!;
  }
  expect(drawn).toBe(times.length);
  expect(lines[0]).toContain('0.2 to 0.5 ms');
});

test('the longest bar of a histogram belongs to the most frequent time', () => {
  const lines = histogram([1, 1, 1, 1, 3]).split('\n');
  expect(lines[0]?.match(/█/g)).toHaveLength(40);
  expect(lines[1]?.match(/█/g)).toHaveLength(10);
});

test.each([[[1]], [[0.000001]], [[0]], [[5, 5]], [[1e6]]])('a histogram of %j has one bar', (times) => {
  expect(histogram(times).split('\n')).toHaveLength(1);
});

test('a table has columns as wide as their cells, and no blanks at the end', () => {
  expect(
    table([
      ['a', 'bcd', 'e'],
      ['long', '', ''],
    ]),
  ).toBe('a     bcd  e\nlong');
});

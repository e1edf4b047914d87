import { countCauses, type Outcome } from '../../scripts/demonstration/news.js';

/** How many messages were lost, printed with the causes. */
export function printLoss(name: string, outcomes: readonly Outcome[]): number {
  const lost = outcomes.filter(({ received }) => !received).length;
  const causes = JSON.stringify(Object.fromEntries(countCauses(outcomes)));
  console.log(`${name}: ${lost} of ${outcomes.length} messages lost ${causes}`);
  return lost;
}

'use strict';

/** What the histories of ended batches contain, counted as Temporal Cloud bills it. */
const { rounded } = require('./figures');

/**
 * Events that are billed as an action each. A local activity is one action for each workflow task that
 * starts some, which the markers overstate.
 */
const ACTIONS = [
  'workflowExecutionStartedEventAttributes',
  'activityTaskScheduledEventAttributes',
  'timerStartedEventAttributes',
  'markerRecordedEventAttributes',
  'upsertWorkflowSearchAttributesEventAttributes',
  'workflowExecutionSignaledEventAttributes',
  'workflowExecutionContinuedAsNewEventAttributes',
];

/**
 * Means over the workflows of `ids`.
 *
 * @param {import('@temporalio/client').Client} temporal
 * @returns {Promise<{ what: string, mean: number }[]>}
 */
async function eventsOf(temporal, ids) {
  const sums = {
    'history events': 0,
    'history bytes': 0,
    'workflow tasks': 0,
    activities: 0,
    actions: 0,
  };
  for (const id of ids) {
    const handle = temporal.workflow.getHandle(id);
    const { events } = await handle.fetchHistory();
    const { historySize } = await handle.describe();
    const count = (names) => events.filter((event) => names.some((name) => event[name])).length;
    sums['history events'] += events.length;
    sums['history bytes'] += Number(historySize ?? 0);
    sums['workflow tasks'] += count(['workflowTaskCompletedEventAttributes']);
    sums.activities += count(['activityTaskScheduledEventAttributes']);
    sums.actions += count(ACTIONS);
  }
  return Object.entries(sums).map(([what, sum]) => ({ what, mean: rounded(sum / ids.length, 1) }));
}

module.exports = { eventsOf };

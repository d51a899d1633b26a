// The official Node client against a served folder: `node official.js SERVICE_URL MODULE`. Ends with
// 0 when all that it checks holds. MODULE: where the client is, as of require().
'use strict';

const assert = require('node:assert');

const [serviceUrl, module_] = process.argv.slice(2);
const Pulsar = require(module_);
const WAIT_MS = 60000;
let topics = 0;

const topic = () => `persistent://public/default/node-${(topics += 1)}`;
const texts = (found) => found.map((each) => each.getData().toString());

async function take(from, count) {
  const found = [];
  while (found.length < count) found.push(await from.receive(WAIT_MS));
  return found;
}

async function publish(client, name, contents, options = {}) {
  const producer = await client.createProducer({ topic: name, sendTimeoutMs: WAIT_MS, ...options });
  const sent = contents.map((each) => producer.send(
    Buffer.isBuffer(each.data) ? each : { data: Buffer.from(each) },
  ));
  await producer.flush();
  const ids = await Promise.all(sent);
  await producer.close();
  return ids;
}

const numbers = (count) => Array.from({ length: count }, (_, at) => `${at}`);

const scenarios = {
  async batchesComeInOrderAndStayAcknowledged(client) {
    const name = topic();
    const subscribed = {
      topic: name, subscription: 's', subscriptionType: 'Exclusive', batchIndexAckEnabled: true,
    };
    let consumer = await client.subscribe(subscribed);
    await publish(client, name, numbers(100), { batchingEnabled: true, compressionType: 'LZ4' });
    const found = await take(consumer, 100);
    assert.deepStrictEqual(texts(found), numbers(100));
    for (const each of found.slice(0, 60)) await consumer.acknowledge(each);
    await consumer.close();
    consumer = await client.subscribe(subscribed);
    assert.deepStrictEqual(texts(await take(consumer, 40)), numbers(100).slice(60));
    await consumer.unsubscribe();
  },

  async everyCompressionComesSingleAndInBatches(client) {
    const name = topic();
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    const sent = ['compressible '.repeat(1000), 'a', ''];
    for (const compressionType of ['LZ4', 'Zlib', 'ZSTD', 'SNAPPY']) {
      for (const batchingEnabled of [true, false]) {
        await publish(client, name, sent, { batchingEnabled, compressionType });
        assert.deepStrictEqual(texts(await take(consumer, 3)), sent);
      }
    }
  },

  async propertiesKeysAndTimes(client) {
    const name = topic();
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    await publish(client, name, [{
      data: Buffer.from([0, 255, 7]),
      properties: { a: 'b', ü: '' },
      partitionKey: 'k',
      orderingKey: 'o',
      eventTimestamp: 1234,
      sequenceId: 9,
    }]);
    const message = await consumer.receive(WAIT_MS);
    assert.deepStrictEqual([...message.getData()], [0, 255, 7]);
    assert.deepStrictEqual({ ...message.getProperties() }, { a: 'b', ü: '' });
    assert.strictEqual(message.getPartitionKey(), 'k');
    assert.strictEqual(message.getOrderingKey(), 'o');
    assert.strictEqual(message.getEventTimestamp(), 1234);
    assert.strictEqual(message.getTopicName(), name);
    assert.strictEqual(message.getRedeliveryCount(), 0);
    await consumer.close();
  },

  async whatIsRefusedComesAgainAndIsADeadLetterThen(client) {
    const name = topic();
    const letters = await client.subscribe({ topic: `${name}-letters`, subscription: 'l' });
    const consumer = await client.subscribe({
      topic: name,
      subscription: 's',
      subscriptionType: 'Shared',
      nAckRedeliverTimeoutMs: 100,
      deadLetterPolicy: {
        deadLetterTopic: `${name}-letters`, maxRedeliverCount: 1, initialSubscriptionName: 'l',
      },
    });
    await publish(client, name, ['m']);
    for (const count of [0, 1]) {
      const message = await consumer.receive(WAIT_MS);
      assert.strictEqual(message.getRedeliveryCount(), count);
      consumer.negativeAcknowledge(message);
    }
    assert.deepStrictEqual(texts([await letters.receive(WAIT_MS)]), ['m']);
    await consumer.close();
    await letters.close();
  },

  async keysStayWithTheirConsumer(client) {
    const name = topic();
    const owners = {};
    const seen = [];
    const options = { topic: name, subscription: 's', subscriptionType: 'KeyShared' };
    const consumers = [];
    let finish;
    const all = new Promise((resolve) => { finish = resolve; });
    for (const at of [0, 1]) {
      consumers.push(await client.subscribe({
        ...options,
        listener: (message, consumer) => {
          const key = message.getPartitionKey();
          assert.strictEqual(owners[key] ?? at, at);
          owners[key] = at;
          seen.push(`${key}:${message.getData()}`);
          consumer.acknowledge(message);
          if (seen.length === 60) finish();
        },
      }));
    }
    const contents = numbers(60).map((each) => (
      { data: Buffer.from(each), partitionKey: `k${Number(each) % 6}` }));
    await publish(client, name, contents, { batchingType: 'KeyBasedBatching' });
    await all;
    for (const key of Object.keys(owners)) {
      const order = seen.filter((each) => each.startsWith(`${key}:`))
        .map((each) => Number(each.split(':')[1]));
      assert.deepStrictEqual(order, [...order].sort((a, b) => a - b));
    }
    for (const each of consumers) await each.close();
  },

  async seekingByIdAndTime(client) {
    const name = topic();
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    const ids = await publish(client, name, numbers(5), { batchingEnabled: false });
    for (const each of await take(consumer, 5)) await consumer.acknowledge(each);
    await consumer.seek(ids[2]);
    assert.deepStrictEqual(texts(await take(consumer, 2)), ['3', '4']);
    await consumer.seekTimestamp(Date.now() - 3600000);
    assert.deepStrictEqual(texts(await take(consumer, 5)), numbers(5));
    await consumer.close();
  },

  async readersKnowWhetherThereIsMore(client) {
    const name = topic();
    await publish(client, name, numbers(10));
    const reader = await client.createReader({
      topic: name, startMessageId: Pulsar.MessageId.earliest(),
    });
    const found = [];
    while (reader.hasNext()) found.push(await reader.readNext(WAIT_MS));
    assert.deepStrictEqual(texts(found), numbers(10));
    await reader.close();
  },

  async chunksAreOneMessage(client) {
    const name = topic();
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    const large = Buffer.alloc(12 << 20, 'x');
    await publish(client, name, [{ data: large }], {
      batchingEnabled: false, chunkingEnabled: true,
    });
    const message = await consumer.receive(WAIT_MS);
    assert.ok(message.getData().equals(large));
    await consumer.acknowledge(message);
    await consumer.close();
  },

  async patternsFindTopics(client) {
    const name = topic();
    await publish(client, `${name}-a`, ['a']);
    await publish(client, `${name}-b`, ['b']);
    const consumer = await client.subscribe({
      topicsPattern: `${name}-.*`,
      subscription: 's',
      subscriptionInitialPosition: 'Earliest',
    });
    assert.deepStrictEqual(texts(await take(consumer, 2)).sort(), ['a', 'b']);
    await consumer.close();
  },

  async partitionsAreOneTopic(client) {
    const name = 'persistent://public/default/partitions';
    assert.deepStrictEqual(
      await client.getPartitionsForTopic(name),
      [0, 1, 2].map((each) => `${name}-partition-${each}`),
    );
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    const ids = await publish(client, name, numbers(9), {
      batchingEnabled: false, messageRoutingMode: 'RoundRobinDistribution',
    });
    assert.strictEqual(new Set(ids.map((each) => each.toString().split(',')[2])).size, 3);
    assert.deepStrictEqual(texts(await take(consumer, 9)).sort(), numbers(9));
    await consumer.close();
  },

  async delaysAndSchemas(client) {
    const name = topic();
    const shared = await client.subscribe({
      topic: name, subscription: 's', subscriptionType: 'Shared',
    });
    const schema = { name: 'V', schemaType: 'Json', schema: '{"type":"record","name":"V","fields":[]}' };
    const began = Date.now();
    await publish(client, name, [{ data: Buffer.from('{}'), deliverAfter: 1500 }], { schema });
    assert.deepStrictEqual(texts(await take(shared, 1)), ['{}']);
    assert.ok(Date.now() - began >= 1400);
    const other = { ...schema, schemaType: 'String', schema: '' };
    await assert.rejects(client.createProducer({ topic: name, schema: other }), /ncompatible/);
    await shared.close();
  },

  async whoIsAloneIsAlone(client) {
    const name = topic();
    const first = await client.createProducer({ topic: name, accessMode: 'Exclusive' });
    await assert.rejects(client.createProducer({ topic: name, accessMode: 'Exclusive' }));
    await first.close();
    const consumer = await client.subscribe({ topic: name, subscription: 's' });
    await assert.rejects(client.subscribe({ topic: name, subscription: 's' }), /ConsumerBusy/);
    await assert.rejects(consumer.receive(10), /TimeOut/i);
    await consumer.close();
  },
};

async function main() {
  Pulsar.Client.setLogHandler(() => {});
  for (const [name, scenario] of Object.entries(scenarios)) {
    const client = new Pulsar.Client({ serviceUrl, operationTimeoutSeconds: WAIT_MS / 1000 });
    try {
      await scenario(client);
    } catch (error) {
      console.error(`${name}: ${error.stack || error}`);
      process.exit(1);
    }
    await client.close();
    console.log(name);
  }
}

main().then(() => process.exit(0));

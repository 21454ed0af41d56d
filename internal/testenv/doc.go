// Package testenv gives tests the real services: PostgreSQL with a database
// per test, Redis, and RocketMQ with a name server and a broker.
//
// Each service comes from the first of these that applies:
//
//  1. an address in the environment: AIVEDIO_TEST_POSTGRES_URL (of a
//     superuser), AIVEDIO_TEST_REDIS_ADDR, AIVEDIO_TEST_ROCKETMQ_NAMESRV with
//     AIVEDIO_TEST_ROCKETMQ_BROKER;
//  2. Docker, when its engine answers a ping (AIVEDIO_TEST_DOCKER=off skips it);
//  3. local processes through package services.
//
// With none of them the test is skipped, loudly, on a laptop, and fails when
// CI=true. Under -short every helper skips: unit tests need no service.
package testenv

-- The demo account of `supabase start`: the sandbox and the live environment that the local start
-- of this project makes as well, and a test key. That start makes a key of its own on each machine;
-- this one is published, so that it needs no file:
--
--   sk_test_PublishedKeyForLocalDevelopmentOnly000000003aKpBk
--
-- It opens the demo sandbox and nothing else, and the functions refuse it wherever they are served
-- over https. There is no published live key: `deno task keys create --mode live` makes one.
--
-- Also where pg_cron finds the functions inside the local stack; supabase/functions/.env.example
-- has the same token. Running it again changes nothing.

do $$
begin
  if pay.find_environment(p_account => 'demo', p_livemode => false) is null then
    perform pay.create_environment(
      p_id => 'env_00000000000000000000000001', p_account => 'demo', p_livemode => false,
      p_name => 'Demo sandbox');
  end if;
  if pay.find_environment(p_account => 'demo', p_livemode => true) is null then
    perform pay.create_environment(
      p_id => 'env_00000000000000000000000002', p_account => 'demo', p_livemode => true,
      p_name => 'Demo live');
  end if;
  if not exists (select from pay.list_api_keys() k where k.id = 'key_00000000000000000000000001') then
    perform pay.create_api_key(
      p_id => 'key_00000000000000000000000001',
      p_environment_id => 'env_00000000000000000000000001',
      p_name => 'Demo key',
      p_scopes => null,
      p_secret_hash => '0fce1dbb01d6dae147fac04350b0cadebbbed485441630fc7474efad004b10a7',
      p_prefix => 'sk_test_',
      p_last_four => 'KpBk',
      p_expires_at => null);
  end if;
  perform pay.configure_relay(
    'http://kong:8000/functions/v1/api-v1-payments/internal/relay',
    'token-for-local-development-only');
end
$$;

-- The orders of a shop, in the schema public. The payments service has its tables in the schema
-- pay. Signed-in payers read their own orders through the Data API. Only the two edge functions,
-- which connect as postgres, write them.

create table public.orders (
  id uuid primary key,
  user_id uuid not null,
  product text not null,
  amount bigint not null,
  currency text not null,
  status text not null default 'open',
  attempt integer not null default 1,
  payment_id text,
  last_sequence bigint not null default 0,
  paid_at timestamptz,
  refunded bigint not null default 0,
  created_at timestamptz not null default now(),
  constraint orders_amount_positive check (amount > 0),
  constraint orders_status_known check (status in ('open', 'waiting', 'processing', 'authorized',
    'paid', 'refunded', 'declined', 'failed', 'cancelled', 'disputed')),
  constraint orders_payment_once unique (payment_id)
);

comment on table public.orders is 'One row for each order. Webhooks decide its status.';
comment on column public.orders.id is 'Made by the browser, and the reference of the payment';
comment on column public.orders.user_id is 'The payer: auth.users.id';
comment on column public.orders.amount is 'In the minor unit of the currency';
comment on column public.orders.attempt is
  'Number of the payment: the payer can begin one more after a decline';
comment on column public.orders.payment_id is 'The payment of this attempt, as soon as it is known';
comment on column public.orders.last_sequence is 'Of the newest event of this attempt that was applied';
comment on column public.orders.paid_at is 'When the payment was completed first: fulfil it once';
comment on column public.orders.refunded is 'In the minor unit of the currency';

-- Serves the list of a payer's orders.
create index orders_of_user on public.orders (user_id, created_at);

alter table public.orders enable row level security;

create policy orders_read_own on public.orders for select to authenticated
  using (user_id = (select auth.uid()));

-- Supabase grants these roles everything on a new table.
revoke all on public.orders from anon, authenticated;
grant select on public.orders to authenticated;

-- Purpose: the columns of the views of Supabase's users (exposure.sql).

-- The columns of a view, in the order of the response. "a" is a column of the table, "a=b" the
-- column b, and "a:type" a member of the body. "a:own" is an object that only the merchant sees.
create or replace function pay_internal.exposed_columns(p_kind text)
returns text language sql immutable as $$
  select case p_kind
    when 'payments' then
      'id object:text status amount=amount_minor amount_minor currency amount_refunded'
      ' amount_refunding amount_captured:bigint amount_disputed amount_received:bigint'
      ' capability:text method_kind method:jsonb instrument_id:text checkout_id:text'
      ' off_session:boolean customer:jsonb payer:jsonb description:text reference metadata:own'
      ' next_action:jsonb return_url:text capture:text capture_before:timestamptz settlement:text'
      ' failure_code:text failure_message:text advice:text return_code:text livemode:boolean'
      ' sequence created_at updated_at completed_at:timestamptz cancelled_at:timestamptz'
    when 'instruments' then
      'id object:text status customer:jsonb method_kind method:jsonb usage mandate:jsonb is_kept'
      ' payment_id ended_reason last_used_at livemode:boolean sequence created_at updated_at'
      ' ended_at customer_id'
    when 'refunds' then
      'id object:text payment_id payment_status:text amount=amount_minor amount_minor currency'
      ' status failure_code:text failure_message:text return_code:text reason:text metadata:own'
      ' destination:jsonb speed:text payee_check:text livemode:boolean created_at'
      ' updated_at:timestamptz'
    when 'disputes' then
      'id object:text payment_id amount_minor currency reason:text status evidence:own'
      ' evidence_due_by:timestamptz created_at closed_at:timestamptz'
    when 'transfers' then
      'id object:text status amount=amount_minor amount_minor currency destination:jsonb speed:text'
      ' payee_check:text description:text metadata:jsonb failure_code:text failure_message:text'
      ' return_code:text livemode:boolean sequence created_at updated_at completed_at:timestamptz'
      ' cancelled_at:timestamptz'
  end
$$;
